// The contract of an engine: where ready work waits, if not in PostgreSQL. test/conformance/queue.ts holds the queue to the same with each of them.
//
// What an engine keeps are hints. What it was handed stands in PostgreSQL, with a bit for each that has left; a claim asks that bit under the row's
// lock. So an engine may give an entry twice, late, to two at once, or after it has ended: it is claimed once. It may also forget: what is still open
// and unknown to it is offered again by tend(). It must not need anybody's help for that; nothing but delay may come of its being away.

import type { EngineName, Handoff } from "#domain/handoff.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Turn } from "./postgres/rounds.ts";

/** Some of a handoff, of one flow, whose bits and numbers follow each other. */
export type Entry = {
  handoff: number;
  /** The first bit. */
  place: number;
  /** The first number. */
  seq: number;
  count: number;
  rank: number;
  tenant: number;
  pool: number;
};

/** What may be taken, in the numbers of the database; null is no bound. */
export type Bounds = {
  ranks: readonly number[];
  channels: readonly number[] | null;
  tenants: readonly number[] | null;
  notTenants: readonly number[];
  regions: readonly number[] | null;
};

export type TakeAsk = Bounds & {
  count: number;
  /** Whose turn is next in a lane. */
  next: (rank: number) => Turn;
  /** Of tenants that have another than 1. */
  weights: ReadonlyMap<number, number>;
};

/** Entries that nobody else is given for now. */
export type Take = {
  readonly entries: readonly Entry[];
  /** There may be more of what was asked for. */
  readonly hasMore: boolean;
  /** Of these, `left` are open and were not claimed: others may have them. `ended` are handoffs of which nothing is left. Without an answer, all come back by themselves. */
  done(left: readonly Entry[], ended: readonly number[]): void;
};

export type Engine = {
  readonly name: EngineName;
  /** Whatever it knows already it may leave as it is. Answers with those that it will not have: they are to wait in PostgreSQL. */
  offer(handoffs: readonly Handoff[]): Promise<number[]>;
  /**
   * Up to so many: higher lanes first, then tenants by turns and weight, first in first out within each, as far as the engine knows an order. Nothing where
   * it is away, or may have forgotten and has not been tended yet.
   */
  take(ask: TakeAsk): Promise<Take>;
  /** Offers what is open and unknown to it, and clears up. Called again and again by one process at a time; yields how many it offered. */
  tend(db: Queryable, size: number): AsyncIterable<number>;
  /** Of one that asks for work by itself: there is something to take that was not there before. */
  watch?(wake: () => void): void;
};

/** A pool is a channel and a region; 0 is any. */
const CHANNELS = 16;

/** For engines that cannot ask for some only. */
export function isWithin({ channels, tenants, regions }: Omit<Bounds, "ranks" | "notTenants">, entry: Entry): boolean {
  const channel = entry.pool % CHANNELS;
  const region = Math.floor(entry.pool / CHANNELS);
  return (
    (channels === null || channel === 0 || channels.includes(channel)) &&
    (tenants === null || tenants.includes(entry.tenant)) &&
    (regions === null || region === 0 || regions.includes(region))
  );
}

export const NOTHING: Take = { entries: [], hasMore: false, done: () => undefined };

/** As few as there can be. */
export function entriesOf({ number: handoff, rank, size, seqs, tenants, pools, places }: Handoff): Entry[] {
  const entries: Entry[] = [];
  let last: Entry | undefined;
  const of = (column: readonly number[], n: number) => column[column.length === 1 ? 0 : n] as number;
  for (let n = 0; n < size; n++) {
    const place = places?.[n] ?? n;
    const seq = seqs.length === 1 ? of(seqs, 0) + n : of(seqs, n);
    const [tenant, pool] = [of(tenants, n), of(pools, n)];
    const isNext =
      last?.tenant === tenant &&
      last.pool === pool &&
      last.seq + last.count === seq &&
      last.place + last.count === place;
    if (last && isNext) last.count++;
    else {
      last = { handoff, place, seq, count: 1, rank, tenant, pool };
      entries.push(last);
    }
  }
  return entries;
}

/** So many from there on. */
export const partOf = (entry: Entry, from: number, count: number): Entry =>
  from === 0 && count === entry.count ? entry : { ...entry, place: entry.place + from, seq: entry.seq + from, count };

/** For engines that keep them one by one. */
export const singly = (entries: readonly Entry[]): Entry[] =>
  entries.flatMap((entry) => Array.from({ length: entry.count }, (_, n) => partOf(entry, n, 1)));

export const countOf = (entries: readonly Entry[]): number => entries.reduce((sum, { count }) => sum + count, 0);
