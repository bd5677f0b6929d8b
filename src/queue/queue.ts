// The contract of a queue engine. test/conformance/queue.ts holds every engine to it.
//
// Enqueuing is not here: accept() puts rows into the queue in the transaction that makes them, so that nothing can be
// accepted and yet nowhere. What is for later becomes claimable by itself when its time has come. What is in the queue but gone
// from the record is let go by whoever comes upon it, claim or sweep.

import type { Attempt, Claimed, Ended, Lease, Postponed, Swept } from "#domain/attempt.ts";
import type { Priority } from "#domain/priority.ts";

export type PostponedNote = { attempt: Attempt; postponed: Postponed };

export type Queue = {
  /**
   * Takes up to `count` of what is ready: urgent before high before normal before low. Within each, what waited for its time
   * goes first, in the order of those times; then the rest, first in first out.
   * No two claims get the same one. Large requests make a claim smaller, never empty. The lease runs from now on the database's clock. `ranks` are the lanes to look at.
   */
  claim(worker: number, count: number, leaseMs: number, ranks?: readonly number[]): Promise<Claimed[]>;
  /**
   * Writes what attempts ended with, and their record, all in one commit. Answers for each whether the lease still held;
   * where it did not, nothing was changed. Settling twice is the same as settling late.
   */
  settle(batch: readonly Ended[]): Promise<boolean[]>;
  /** Prolongs those of these leases that the worker still holds; answers with them. Whatever is missing is lost. */
  extend(worker: number, leases: readonly Lease[], leaseMs: number): Promise<Lease[]>;
  /**
   * Takes over expired leases, which shuts their holders out, as attempts that the sweeper must now settle: whole claims, until they are
   * `count` or none is left.
   * `heldBy` is the worker that let them run out.
   */
  sweep(worker: number, count: number, leaseMs: number): Promise<Swept[]>;
  /**
   * Writes into the record, once for each, that it waits for one of our guards. Only while its lease is held: a line that came
   * after the ending would hide it.
   */
  notePostponed(worker: number, batch: readonly PostponedNote[]): Promise<void>;
  depth(): Promise<{ depth: { [lane in Priority]: number }; processing: number; scheduled: number }>;
};
