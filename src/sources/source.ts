// The contract of a source: where requests come from besides HTTP. test/conformance/source.ts holds every one to it.
//
// A source reads partitions of messages, each in order. Whoever runs it keeps them: what can be accepted is, what cannot is refused, and how far the
// partition has come is kept, all in one transaction. So nothing is lost and nothing doubled, whatever ends in between; what the broker itself
// remembers is for those who watch its lag.

/** As it came. Headers by name in lower case; of several with one name the last counts. */
export type Message = { offset: number; headers: ReadonlyMap<string, string>; value: Buffer | undefined };

export type Batch = {
  topic: string;
  partition: number;
  /** Where its reader began: the offset that was kept when it read the first of them. */
  from: number;
  messages: readonly Message[];
};

/** `moved`: all of them are kept, go on from `next`. `elsewhere`: somebody else has kept some of it meanwhile; read from `next` on, which is what is kept. */
export type Kept = { kind: "moved" | "elsewhere"; next: number };

/** What a source is given to run with. */
export type Keeping = {
  /** The offset to go on from, of each partition that was ever kept. */
  offsets(topic: string): Promise<ReadonlyMap<number, number>>;
  /** Rejects in an outage: the same again later then. Waits while acceptance is full, which keeps a source from reading on. */
  keep(batch: Batch): Promise<Kept>;
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
