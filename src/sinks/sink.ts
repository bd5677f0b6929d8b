// The contract of a sink: where facts go. test/conformance/sink.ts holds every one to it.
//
// At least once, in order for each notification. A sink keeps nothing: whoever runs it keeps how far it has come, and moves that on only when the
// other side has confirmed.

import type { Fact } from "#domain/fact.ts";
import type { ToldBody } from "#domain/fact-body.ts";

/** A fact with what the record says of it. */
export type Told = {
  fact: Fact;
  /** Its name. */
  tenant: string;
  body: ToldBody;
};

/** Of one that the other side will never take: the rest goes on. `error` is shown to people. */
export type Refused = { told: Told; error: string };

export type Sink = {
  /** So many it takes at once. */
  most: number;
  /**
   * Resolves when the other side has confirmed all of them but those that it refuses for good. Rejects when that is not known: then all of them come
   * again. The signal ends it: nothing of it may go on afterwards that could arrive after what comes next.
   */
  deliver(facts: readonly Told[], signal: AbortSignal): Promise<readonly Refused[]>;
  /** Connections are closed; never rejects. */
  close(): Promise<void>;
};

/** Opens nothing yet: the first delivery connects, and each that follows a failure does so again. Throws only where something is missing to run it at all. */
export type OpenSink<Settings> = (settings: Settings, name: string) => Promise<Sink>;
