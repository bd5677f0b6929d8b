// What a worker claims next: how many, of which lanes, and whose not.
//
// What waits in hand is about a quarter of a second's work at its recent pace, so that turns in hand are soon over. Lower work takes no
// room from higher: a lane has what it and those above it leave free. And no tenant takes all of a lane's room: one has
// enough while it has as much waiting as is free, by its weight, so that another's is claimed however much the first has ready.
// (So alone it has half, which is why the room is twice of what one needs.) Small claims are put off while there is enough to do.

import { CALLBACK_RANK, isHigh, RANKS } from "#domain/priority.ts";
import type { Share } from "./share.ts";

/** One claim. */
export type Ask = { ranks: number[]; notTenants: number[]; count: number };

/** `ranks`: the lanes that the worker takes, the highest first. `freeBytes`: of requests, what there is room for in memory. */
export type AppetiteOptions = {
  ranks: readonly number[];
  concurrency: number;
  batchSize: number;
  perSecond: number;
  freeBytes: number;
};

const SECONDS = 1 / 4;
const MOST_BATCHES = 4;
/** A tenant has enough when its requests are this many times what is free. Then one that has few and small ones is still asked for. */
const TIMES_FREE_BYTES = 2;
const FEW_BYTES = 1024 * 1024;

/** From the highest lanes down: lanes of which the same tenants have enough are asked together. */
export function asksFor(shares: Iterable<Share>, options: AppetiteOptions): Ask[] {
  const { concurrency, batchSize, perSecond } = options;
  const mostBytes = Math.max(FEW_BYTES, TIMES_FREE_BYTES * options.freeBytes);
  const most = Math.max(concurrency, Math.min(MOST_BATCHES * batchSize, perSecond * SECONDS));
  const least = Math.max(1, Math.min(batchSize / 2, most / 4));
  const all = 2 * most;
  const busy = [...shares].filter((share) => !share.isIdle);
  const loads = loadsOf(busy);
  const isAnyHeavy = busy.some(({ bytes }) => bytes > mostBytes);
  const asks: Ask[] = [];
  for (const rank of options.ranks) {
    const { sum, mostOfOne } = loads[rank] as Load;
    const isForAnybody = all - sum - mostOfOne >= 2 * least && (!isAnyHeavy || isHigh(rank));
    const room = isForAnybody
      ? { free: all - sum, mostOfOne, notTenants: [] }
      : roomOf(rank, busy, all, least, mostBytes);
    // Whoever gets all of it has then as much as is left.
    const count = Math.floor(Math.min(batchSize, (room.free - room.mostOfOne) / 2));
    if (count < least) break;
    const before = asks.at(-1);
    // Who has enough of a lane has enough of those below it.
    if (before?.notTenants.length === room.notTenants.length) {
      before.ranks.push(rank);
      before.count = count;
    } else asks.push({ ranks: [rank], notTenants: room.notTenants, count });
  }
  return asks;
}

/** What waits in a lane and those above it: of all together, and the most of one, by its weight. */
type Load = { sum: number; mostOfOne: number };

/** By lane. There may be thousands of tenants, and this is looked at before every claim: once through all of them, if nobody has enough. */
function loadsOf(shares: readonly Share[]): Load[] {
  const loads = [...RANKS, CALLBACK_RANK].map(() => ({ sum: 0, mostOfOne: 0 }));
  for (const { waiting, weight } of shares) {
    let count = 0;
    for (let lane = 0; lane < loads.length; lane++) {
      const load = loads[lane] as Load;
      count += waiting[lane] ?? 0;
      load.sum += count;
      load.mostOfOne = Math.max(load.mostOfOne, count / weight);
    }
  }
  return loads;
}

/** What a lane leaves free, who has enough of that, and the most that one of the others has. */
function roomOf(rank: number, shares: readonly Share[], all: number, least: number, mostBytes: number) {
  const free = freeOf(rank, shares, all);
  const notTenants: number[] = [];
  let mostOfOne = 0;
  for (const share of shares) {
    const part = inFront(share, rank) / share.weight;
    const isHeavy = share.bytes > mostBytes && !isHigh(rank);
    if (isHeavy || free - part < 2 * least) notTenants.push(share.tenant);
    else mostOfOne = Math.max(mostOfOne, part);
  }
  return { free, mostOfOne, notTenants };
}

/** Of a tenant's, what goes before or with a lane. */
function inFront({ waiting }: Share, rank: number): number {
  let sum = 0;
  for (let lane = 0; lane <= rank; lane++) sum += waiting[lane] ?? 0;
  return sum;
}

/**
 * Room shrinks with the pace: who then has more waiting than is free, by its weight, counts as if it had just that. What one
 * tenant cannot get rid of is no other's loss.
 */
function freeOf(rank: number, shares: readonly Share[], room: number): number {
  let free = Number.NEGATIVE_INFINITY;
  for (;;) {
    let left = room;
    let parts = 1;
    for (const share of shares) {
      const count = inFront(share, rank);
      if (free === Number.NEGATIVE_INFINITY || count <= free * share.weight) left -= count;
      else parts += share.weight;
    }
    const found = left / parts;
    if (found === free) return free;
    free = found;
  }
}

/** Those asks, of such lanes only. */
export const among = (asks: readonly Ask[], isOne: (rank: number) => boolean): Ask[] =>
  asks.map((ask) => ({ ...ask, ranks: ask.ranks.filter(isOne) })).filter(({ ranks }) => ranks.length > 0);

/** There is room for some of which there was none before: a lane, or somebody's part of it. */
export const hasOpened = (before: readonly Ask[], now: readonly Ask[]): boolean =>
  now.some(({ ranks, notTenants }) =>
    ranks.some((rank) => {
      const was = before.find((ask) => ask.ranks.includes(rank));
      return !was || was.notTenants.some((tenant) => !notTenants.includes(tenant));
    }),
  );

/** Of every lane, at least somebody's. */
export const isForLanes = (asks: readonly Ask[], all: readonly number[]): boolean =>
  asks.reduce((sum, { ranks }) => sum + ranks.length, 0) === all.length;

/** Of every lane, and whosever it is. */
export const isForAll = ([first]: readonly Ask[], all: readonly number[]): boolean =>
  first?.ranks.length === all.length && first.notTenants.length === 0;
