// The part of the client for sources and sinks, which those have to do with who run the deployment, and for what they refused.

import type { CallOptions } from "./client.ts";
import { type Page, type PageOptions, pageQuery } from "./scheduling.ts";

export type ConnectorKind = "source" | "sink";
export type Connector = {
  name: string;
  type: string;
  /** Whether the configuration of the process that answered has it. */
  configured: boolean;
  /** `idle`: no process runs it. */
  state: "running" | "paused" | "failing" | "idle";
  /** Of a pause, or of failing. */
  since?: string;
  /** Why it is paused. */
  reason?: string;
  pausedBy?: string;
  error?: string;
  carried: number;
  refused: number;
  movedAt?: string;
};
export type SourceState = Connector & {
  /** Messages that waited when each partition last moved, where that is known. */
  lag: { messages?: number };
  offsets: { topic: string; partition: number; next: number; waiting?: number; movedAt: string }[];
};
/** `facts` are counted up to 10,000. */
export type SinkState = Connector & { lag: { ms: number; facts: number } };
export type SinkReplay = {
  /** The position from which on it is told. */
  next: string;
  /** False where it had not come as far as that anyway. */
  moved: boolean;
};
export type Refusal = {
  id: string;
  kind: ConnectorKind;
  name: string;
  tenant?: string;
  /** Where it came from. */
  place: string;
  code: string;
  errors: { path: string; message: string }[];
  at: string;
};
export type RefusalFilters = PageOptions & { kind?: ConnectorKind; name?: string };

type Connectors<State> = {
  list(options?: CallOptions): Promise<{ data: State[] }>;
  pause(name: string, reason: string, options?: CallOptions): Promise<State>;
  resume(name: string, options?: CallOptions): Promise<State>;
};

export type ConnectorClient = {
  sources: Connectors<SourceState>;
  sinks: Connectors<SinkState> & {
    /** Told again what happened since then. Throws RESET where that is no longer kept. */
    replay(name: string, since: string, options?: CallOptions): Promise<SinkReplay>;
    /** One that is no longer configured. */
    forget(name: string, options?: CallOptions): Promise<void>;
  };
  refusals: {
    /** The latest first. */
    list(filters?: RefusalFilters, options?: CallOptions): Promise<Page<Refusal>>;
  };
};

type Call = <Body>(method: string, path: string, options?: CallOptions, body?: unknown) => Promise<Body>;

export function connectorClient(call: Call): ConnectorClient {
  const place = (kind: ConnectorKind, name: string, ...verb: string[]) =>
    [`/v1/${kind}s`, encodeURIComponent(name), ...verb].join("/");
  const of = <State>(kind: ConnectorKind): Connectors<State> => ({
    list: (options) => call("GET", `/v1/${kind}s`, options),
    pause: (name, reason, options) => call("POST", place(kind, name, "pause"), options, { reason }),
    resume: (name, options) => call("POST", place(kind, name, "resume"), options),
  });
  return {
    sources: of("source"),
    sinks: {
      ...of<SinkState>("sink"),
      replay: (name, since, options) => call("POST", place("sink", name, "replay"), options, { since }),
      forget: (name, options) => call("DELETE", place("sink", name), options),
    },
    refusals: { list: (filters, options) => call("GET", `/v1/refusals${pageQuery(filters)}`, options) },
  };
}
