// The contract of a queue engine: everything the product asks of a queue. test/conformance/queue.ts holds every engine to it.
//
// The record stays in PostgreSQL whatever the engine, and what is written into both is written together. So two things are asked in
// SQL, in the statement of whoever asks: carillon.accept() offers what it stores through the views queue_now and queue_later, so that
// nothing can be accepted and yet nowhere; and the record asks queue_standing(), queue_has() and queue_entries where a notification
// stands (migrations/0023_queue.sql). Where a verb takes a `db`, what it does is part of that connection's transaction, if there is one.
//
// What is for later becomes claimable by itself when its time has come. What is in the queue but gone from the record is let go by
// whoever comes upon it, claim or sweep. A verb rejects only when the database or the engine is away or refuses; then it may have
// happened or not, and each says what doing it again amounts to.

import type { Attempt, Claimed, Ended, Lease, Postponed, Swept } from "#domain/attempt.ts";
import type { Channel } from "#domain/notification.ts";
import type { Priority } from "#domain/priority.ts";
import type { Status } from "#domain/status.ts";
import type { Flow, WorkerTakes } from "#domain/worker-takes.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Next } from "#store/due.ts";

/** What a worker takes; what is left out is no bound. What names no region is taken wherever it is. */
export type Takes = {
  ranks: readonly number[];
  channels?: readonly Channel[];
  /** By name, since one may be made later. */
  tenants?: readonly string[];
  notTenants?: readonly number[];
  regions?: readonly string[];
};

/** What can be kept from being claimed. A tenant goes by its name. */
export type Pausable =
  | { kind: "lane"; name: Priority }
  | { kind: "channel"; name: Channel }
  | { kind: "tenant"; name: string };

/** Without `until`, for good. */
export type Pause = { reason: string; until?: Date; by?: string };

export type PostponedNote = { attempt: Attempt; postponed: Postponed };

/** What is left out stays; an expiry of null is dropped. */
export type Change = { dueAt?: string; expiresAt?: string | null; rank?: number };

export type Moved =
  | { kind: "unknown" }
  /** It is too late: somebody has taken it up, or it has ended. */
  | { kind: "over"; status: Status }
  | { kind: "refused"; reason: string }
  | { kind: "done"; status: Status; priority: Priority; dueAt: Date | null; expiresAt: Date | null };

/** Of what waits for its time: the next to come, and whether one has that nobody has claimed yet. */
export type NextDue = Next & { hasDue: boolean };

export type Depth = {
  /** What may be claimed, lane by lane. */
  depth: { [lane in Priority]: number };
  processing: number;
  /** What waits for a time that has not come. */
  scheduled: number;
  /** Of what may be claimed; 0 where nothing may. */
  oldestAgeMs: number;
};

/** Of one tenant, lane by lane, each counted up to a bound. */
export type LaneDepths = {
  queued: { [lane in Priority]: number };
  scheduled: { [lane in Priority]: number };
  processing: { [lane in Priority]: number };
  /** There may be more that is queued than was looked at. */
  isPartial: boolean;
  oldestAgeMs: number;
};

/** What waits in a flow: up to 1,000 of it counted. */
export type Untaken = Flow & { count: number; oldestAgeMs: number };

export type Figures = Pick<Depth, "depth" | "oldestAgeMs">;

export type Queue = {
  /** What people call the engine. */
  readonly name: string;
  /**
   * Takes up to `count` of what is ready: urgent before high before normal before low. Within each, tenants take turns, each so many times the
   * tenant's weight, and what some leave of theirs goes to those that have more; the next claim of this process goes on where this one ended.
   * Within a tenant, whatever the channel, what waited for its time goes first, in the order of those times; then the rest, first in
   * first out. They are answered in that order, turn by turn.
   * No two claims get the same one. Large requests make a claim smaller, never empty; so does what others are just claiming, empty only where they go on
   * claiming all of it. But for that, a claim that is shorter than asked has left nothing behind that it may take, other than what others are just handing back. The
   * lease runs from now on the database's clock. Without `takes` it takes of everything. A claim whose answer was lost is found by the sweep.
   */
  claim(worker: number, count: number, leaseMs: number, takes?: Takes): Promise<Claimed[]>;
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
   * Writes into the record, once for each however often it is called, that it waits for one of our guards; and once more that
   * nobody answers, if it was something else before. Only while its lease is held: a line that came after the ending would hide it.
   */
  notePostponed(worker: number, batch: readonly PostponedNote[]): Promise<void>;
  /** What is paused is neither due nor next; that a pause ends is a next, too. */
  nextDue(): Promise<NextDue>;

  /**
   * Ends what waits, with its record. True when this call did; false where there is nothing, it has ended, or somebody holds it: it is
   * never both cancelled and sent. What is just being handed back may be missed.
   */
  cancel(db: Queryable, tenant: number, id: string): Promise<boolean>;
  /** The same for many; answers with those that this call has ended. */
  cancelAll(db: Queryable, tenant: number, ids: readonly string[]): Promise<string[]>;
  /** Another time, expiry or priority for what waits. Doing it again does it again, and the record says so twice. */
  move(db: Queryable, tenant: number, id: string, change: Change): Promise<Moved>;
  /**
   * Brings back what has ended without being sent, with a fresh budget of attempts; answers with those. An expiry that has passed is dropped.
   * What waits, was sent or is unknown is left alone, so of two calls one brings it back.
   */
  retry(db: Queryable, tenant: number, ids: readonly string[]): Promise<string[]>;
  /** Ends up to so many of those that waited past their expiry; answers with how many. What a claim takes meanwhile is left to it. */
  expire(db: Queryable, count: number): Promise<number>;
  /**
   * Nothing of it is claimed any more by anybody, until it is resumed or the pause ends; what is held goes on. It stays where it is, in its
   * order. Pausing what is paused gives it another reason and end.
   */
  pause(db: Queryable, what: Pausable, pause: Pause): Promise<void>;
  /** False where it was not paused. */
  resume(db: Queryable, what: Pausable): Promise<boolean>;

  /**
   * Brings up to so many of those back into their lanes that were put off until one of several accounts is no longer paused, and one is;
   * the first accepted first; workers are told. Answers with how many.
   */
  bringBack(db: Queryable, count: number): Promise<number>;

  /** Of a tenant, or of all. Counts everything. */
  depth(db: Queryable, tenant?: number): Promise<Depth>;
  /** Of a tenant: `most` and one more counted of what is queued and of what is scheduled in a lane, so that it costs no more however much waits. */
  depthOf(db: Queryable, tenant: number, most: number): Promise<LaneDepths>;
  /** The same for metrics, of all tenants: each lane up to 10,000, so that it costs no more however much waits. */
  figures(db: Queryable): Promise<Figures>;
  /**
   * Of what may be claimed, of a tenant or of all, flows that none of these workers takes: a hundred at most, and ten of each tenant.
   * That something is paused makes no difference.
   */
  untaken(db: Queryable, workers: readonly WorkerTakes[], tenant?: number): Promise<Untaken[]>;
  /** Whether anything is in a lane, without counting it. */
  hasReady(db: Queryable): Promise<boolean>;
};
