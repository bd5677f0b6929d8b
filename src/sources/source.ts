// The contract of a source: where requests come from besides HTTP. test/conformance/source.ts holds every one to it.
//
// A source reads partitions of messages, each in order. Whoever runs it keeps them: what can be accepted is, what cannot is refused, and how far the
// partition has come is kept, all in one transaction. So nothing is lost and nothing doubled, whatever ends in between; what the broker itself
// remembers is for those who watch its lag.

import type { Fault } from "#domain/problems.ts";

/** As it came. Headers by name in lower case; of several with one name the last counts. Where they are too large there are none, only their size. */
export type Message = {
  offset: number;
  headers: ReadonlyMap<string, string>;
  headerBytes: number;
  value: Buffer | undefined;
};

export type Batch = {
  topic: string;
  partition: number;
  /** Where its reader began: what is kept, once those before it are. */
  from: number;
  /** Where its reader stands after it. Offsets may have holes, also at the end. */
  next: number;
  /** Where the partition ended when they were read, where that is known. */
  ends?: number | undefined;
  messages: readonly Message[];
};

export type Refusal = { id: number; offset: number; place: string; code: string; faults: readonly Fault[] };

/** `moved`: all of them are kept. `elsewhere`: somebody else has kept some of it meanwhile; read from `next` on, which is what is kept. */
export type Kept = { kind: "moved"; refused: readonly Refusal[] } | { kind: "elsewhere"; next: number };

/** Rejects in an outage: then they are read again. Waits while acceptance is full, which keeps a source from reading on. */
export type Keep = () => Promise<Kept>;

/** What a source is given to run with. */
export type Keeping = {
  /** The offset to go on from, of each partition that was ever kept. */
  offsets(topic: string): Promise<ReadonlyMap<number, number>>;
  /** Reads what they say. Those of one partition may be read while those before them are kept, and are kept one after the other. */
  read(batch: Batch): Promise<Keep>;
  /** Refusals that a topic of them should have for a while, and does not. */
  untold(): Promise<readonly Omit<Refusal, "offset">[]>;
  /** A topic of refusals has them. */
  told(refusals: readonly Pick<Refusal, "id">[]): Promise<void>;
  /** The broker no longer had what came next; it went on with what it has. */
  missed(what: string): void;
  /** It does not go on, and why; told to people. Undefined: it does. */
  failed(error: unknown | undefined): void;
};

export type RunningSource = {
  /** Messages that wait, over all partitions of this process; undefined while that is not known. */
  lag(): number | undefined;
  /** After this nothing is kept any more; never rejects. */
  stop(): Promise<void>;
};

/** Runs until it is stopped, and makes itself anew whenever what it reads from ends. Throws only where something is missing to run it at all. */
export type OpenSource<Settings> = (settings: Settings, name: string, keeping: Keeping) => Promise<RunningSource>;

/** Headers of a message that are more than this are not read, and the message is refused. */
export const MOST_HEADER_BYTES = 65_536;
