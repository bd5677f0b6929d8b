// The part of the client for whoever follows what happens: page by page, or as it happens.
//
// Who follows is told each fact once, from a position on, through lost connections and processes that are replaced: the stream is opened
// again after the last that was told. What cannot be told without a gap ends it with the error RESET, never with silence.

import type { FactType } from "#domain/fact.ts";
import type { FactBody } from "#domain/fact-body.ts";
import type { CallOptions } from "./client.ts";
import { CarillonError, errorOf } from "./error.ts";

export type { FactType };
export type Fact = FactBody;
export type FactFilters = {
  /** A `position` or `next` of before. */
  after?: string;
  /** An instant; `after` goes before. */
  since?: string;
  types?: readonly FactType[];
  /** Of this notification alone. */
  notification?: string;
};
export type FactPage = { data: Fact[]; next: string; isAtEnd: boolean };

export type EventClient = {
  events: {
    /** A page may be short or empty although there is more: `isAtEnd` says so, and `next` is where to go on. */
    list(filters?: FactFilters & { limit?: number }, options?: CallOptions): Promise<FactPage>;
    /**
     * What happens, as it happens, until the loop is left or the signal aborts. Without `after` and `since` it begins now. It comes back by itself,
     * for ever unless `maxAttempts` says after how many failures in a row it gives up. Throws RESET with `next`, and whatever else the server refuses.
     */
    follow(filters?: FactFilters, options?: CallOptions): AsyncGenerator<Fact, void>;
  };
};

type Call = <Body>(method: string, path: string, options?: CallOptions, body?: unknown) => Promise<Body>;
/** One GET, answered with whatever it is. */
type Open = (path: string, headers: { [name: string]: string }, signal: AbortSignal) => Promise<Response>;

export type Following = {
  open: Open;
  sleep: (ms: number) => Promise<void>;
  /** Answers that say "not now". */
  isPassing: (status: number) => boolean;
};

/** A comment comes every 25 s: whatever is silent for longer is gone. */
const SILENT_MS = 60_000;
const BACK_MS = 1_000;
const MOST_BACK_MS = 30_000;

export function eventClient(call: Call, { open, sleep, isPassing }: Following): EventClient {
  async function* follow(filters: FactFilters = {}, options: CallOptions = {}): AsyncGenerator<Fact, void> {
    const { signal, maxAttempts = Number.POSITIVE_INFINITY } = options;
    const path = `/v1/events${queryOf(filters)}`;
    let position: string | undefined;
    for (let failures = 0; !signal?.aborted; ) {
      try {
        for await (const { id, name, data } of eventsOf(open, path, position, signal)) {
          failures = 0;
          position = id ?? position;
          if (name === "reset") throw resetTo(JSON.parse(data).next);
          if (name === "fact") yield JSON.parse(data);
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof CarillonError && !isPassing(error.status)) throw error;
        if (++failures >= maxAttempts) throw error;
      }
      // Those whose process ended come back one by one.
      if (!signal?.aborted) await sleep(Math.random() * Math.min(MOST_BACK_MS, BACK_MS * 2 ** failures));
    }
  }
  return {
    events: {
      list: (filters = {}, options) => call("GET", `/v1/events${queryOf(filters)}`, options),
      follow,
    },
  };
}

const resetTo = (next: string): CarillonError =>
  new CarillonError(410, { code: "RESET", detail: "what follows this position cannot be told without a gap", next });

function queryOf({ types, ...rest }: FactFilters & { limit?: number }): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) query.set(name, String(value));
  if (types) query.set("types", types.join(","));
  return query.size > 0 ? `?${query}` : "";
}

type StreamEvent = { name: string; data: string; id: string | undefined };

/** Of one connection, to its end. */
async function* eventsOf(
  open: Open,
  path: string,
  position: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent> {
  const silent = new AbortController();
  const either = signal ? AbortSignal.any([signal, silent.signal]) : silent.signal;
  const within = async <Value>(work: Promise<Value>): Promise<Value> => {
    const timer = setTimeout(() => silent.abort(new Error("the stream fell silent")), SILENT_MS);
    return work.finally(() => clearTimeout(timer));
  };
  const headers = { accept: "text/event-stream", ...(position !== undefined && { "last-event-id": position }) };
  const answer = await within(open(path, headers, either));
  if (!answer.ok || !answer.body) throw await errorOf(answer);
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await within(reader.read());
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = parts.pop() ?? "";
      yield* parts.map(eventOf);
    }
  } finally {
    silent.abort();
  }
}

/** Lines that begin with a colon are comments. */
function eventOf(text: string): StreamEvent {
  const event: StreamEvent = { name: "", data: "", id: undefined };
  for (const line of text.split(/\r?\n/)) {
    const [, field, value = ""] = /^(\w+):? ?(.*)$/.exec(line) ?? [];
    if (field === "event") event.name = value;
    else if (field === "data") event.data += value;
    else if (field === "id") event.id = value;
  }
  return event;
}
