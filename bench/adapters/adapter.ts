// What the benchmark asks of everybody that it compares.

import type { Due, MixedJob } from "../payload.ts";

export type BulkProducer = {
  /** Builds the arguments of one bulk call now and returns the call, so that the clock sees the call alone. */
  batch(from: number, size: number): () => Promise<unknown>;
  close(): Promise<void>;
};

export type Producer = BulkProducer & {
  /** Hands over job number i; resolves once the store has it. `at` travels with it. */
  one(i: number, at?: number): Promise<unknown>;
  /** The same, for later. */
  later(i: number, due: Due): Promise<unknown>;
  /** One bulk call: a job for each instant, numbered from `from`. */
  batchLater(from: number, dues: readonly Due[]): Promise<unknown>;
  /** One bulk call: jobs of one tenant, of either priority, that take their time. */
  mixed(jobs: readonly MixedJob[]): Promise<unknown>;
};

export type Adapter<P extends BulkProducer = Producer> = {
  name: string;
  /** The settings that matter, for the record; bench/README.md gives the reasons. */
  settings: string;
  /** Removes everything of this adapter from the store, so that whoever comes next finds it empty. */
  clear(): Promise<void>;
  /** Makes what is needed in an empty store. */
  open(): Promise<P>;
  /** How many jobs the store holds: the proof that all calls did what they said. */
  stored(): Promise<number>;
  /** How many jobs are not done yet. */
  remaining(): Promise<number>;
};
