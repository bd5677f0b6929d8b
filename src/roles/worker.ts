// The worker: claims, delivers, settles.
//
// It holds at most four batches at once, and never more than it can start within half a lease at its recent pace, nor large
// requests without end. While
// one batch is being sent the next is claimed. All leases in hand are extended together, well before they end.
// State: what is held (by seq), what is still to be started, and the pace.

import type { Attempt } from "#domain/attempt.ts";
import { PRIORITIES, type Priority } from "#domain/priority.ts";
import type { Queue } from "#queue/queue.ts";
import { deliver, type World } from "#steps/walk/deliver.ts";
import type { Settle } from "#steps/walk/settle.ts";
import type { Logger } from "#telemetry/log.ts";
import { createNap } from "#timing/nap.ts";
import { Held, isOver } from "./held.ts";

export type WorkerOptions = {
  id: number;
  queue: Pick<Queue, "claim" | "extend">;
  settle: Settle;
  world: Omit<World, "settle" | "leaseMarginMs">;
  /** Looks at a claim before any of it is sent; undefined where there is nothing to look at. */
  prepare?: (attempts: readonly Attempt[]) => Promise<unknown> | undefined;
  sendTimeoutMs: number;
  batchSize: number;
  concurrency: number;
  leaseMs: number;
  pollMs: { [lane in Priority]: number };
  log: Logger;
};

export type RunningWorker = {
  /** Something may be ready. */
  wake(): void;
  /** Has all it can hold: somebody else had better look. */
  isFull(): boolean;
  stats(): { held: number; sending: number; delivered: number };
  /**
   * Stops claiming and hands back what has not begun, both at once, and waits for the rest. After `drainMs` that is aborted; what
   * does not end even then is left to its lease.
   */
  stop(drainMs: number): Promise<void>;
};

/** A send starts only while its lease has this much left. */
export const leaseMarginMs = (leaseMs: number): number => Math.min(5_000, leaseMs / 4);

const FAILED_CLAIM_MS = 500;
/** For what sends came to that were aborted. */
const ABORTED_MS = 1_000;
const LEAST_MS = 2;
/** Of a burst the first are begun after a millisecond, while PostgreSQL is busy with the rest of a batch. */
const FIRST_CLAIM = 100;
const MOST_BATCHES = 4;
/** Of requests in hand. With what is made of them to send, several times as much memory. */
const MOST_BYTES = 32 * 1024 * 1024;
/**
 * Answers that come together would otherwise lead to requests that leave together, only once all of them are made, whose
 * answers come together again: in a convoy of a hundred a provider of 20 ms seemed to take 27.
 */
const MOST_BEGUN = 4;
const ALL = PRIORITIES.map((_, rank) => rank);

export function startWorker(options: WorkerOptions): RunningWorker {
  const { id, queue, settle, sendTimeoutMs, batchSize, concurrency, leaseMs, pollMs, log } = options;
  const { monotonic } = options.world;
  const world: World = { ...options.world, settle: settle.settle, leaseMarginMs: leaseMarginMs(leaseMs) };
  const held = new Map<number, Held>();
  let waiting: Held[] = [];
  let next = 0;
  let heldBytes = 0;
  let sending = 0;
  let isPumping = false;
  /** Sends that were begun in this turn of the event loop and wait for an answer. */
  let begun = 0;
  let delivered = 0;
  let isStopping = false;
  let isFull = false;
  let hasBacklog = false;
  const nap = createNap();
  let whenEmpty: (() => void) | undefined;
  const paces = createPace(monotonic);

  /** How many more may be claimed now. Small claims are put off while there is enough to do. */
  function room(): number {
    if (heldBytes >= MOST_BYTES) return 0;
    const most = Math.max(concurrency, Math.min(MOST_BATCHES * batchSize, paces.perSecond() * (leaseMs / 2000)));
    const free = Math.floor(Math.min(batchSize, most - held.size));
    if (free < Math.max(1, Math.min(batchSize / 2, most / 4))) return 0;
    return hasBacklog ? free : Math.min(free, FIRST_CLAIM);
  }

  async function claimLoop(): Promise<void> {
    const lastPolls = ALL.map(() => Number.NEGATIVE_INFINITY);
    const dueAt = (rank: number) => (lastPolls[rank] ?? 0) + pollOf(rank);
    while (!isStopping) {
      const count = room();
      isFull = count === 0;
      if (isFull) {
        // What comes in meanwhile is looked for anyway once there is room.
        nap.wasWoken();
        await nap.sleep(leaseMs);
        continue;
      }
      const now = monotonic();
      const ranks = nap.wasWoken() ? ALL : ALL.filter((rank) => dueAt(rank) <= now);
      for (const rank of ranks) lastPolls[rank] = now;
      await look(count, ranks);
      await nap.sleep(Math.max(1, Math.min(...ALL.map(dueAt)) - monotonic()));
    }
  }

  /** One claim, and the start of what it brings. */
  async function look(count: number, ranks: number[]): Promise<void> {
    if (ranks.length === 0) return;
    const claimed = await claim(count, ranks);
    hasBacklog = claimed.length === count;
    // Where there were some there may be more.
    if (claimed.length > 0) nap.wake();
    const taken = claimed.map(hold);
    try {
      await options.prepare?.(claimed);
    } catch (error) {
      // What could not be looked at is not sent.
      log.warn({ err: error }, "could not look at a claim; it is handed back");
      handBack(taken);
      return pause(FAILED_CLAIM_MS);
    }
    begin(taken);
    // Under a steady trickle, claims of a few every other millisecond rather than of one every time it rings.
    if (claimed.length > 0 && claimed.length < Math.min(count, batchSize / 10)) await pause(LEAST_MS);
  }

  /** Held until that is written, so that nobody takes it for lost; but it never comes among those that are begun. */
  function handBack(unbegun: readonly Held[]): void {
    for (const one of unbegun) {
      // If the database is away they come back by themselves when their leases run out.
      const back = settle.settle({ attempt: one.attempt, settlement: { to: "queued" } });
      void back.catch(() => false).then(() => letGo(one));
    }
  }

  const pollOf = (rank: number): number => pollMs[PRIORITIES[rank] ?? "normal"];

  async function claim(count: number, ranks: number[]): Promise<Attempt[]> {
    try {
      return await queue.claim(id, count, leaseMs, ranks);
    } catch (error) {
      log.warn({ err: error }, "could not claim");
      await pause(FAILED_CLAIM_MS);
      return [];
    }
  }

  function hold(attempt: Attempt): Held {
    const one = new Held(attempt, sendTimeoutMs, freeSlot);
    held.set(attempt.seq, one);
    heldBytes += bytesOf(attempt);
    return one;
  }

  function begin(taken: readonly Held[]): void {
    for (const one of taken) waiting.push(one);
    pump();
  }

  function freeSlot(): void {
    sending--;
    pump();
  }

  function pump(): void {
    // A provider that answers at once frees its slot while we are in here.
    if (isPumping) return;
    isPumping = true;
    while (!isStopping && sending < concurrency && begun < MOST_BEGUN && next < waiting.length) {
      const one = waiting[next++] as Held;
      const before = sending++;
      void run(one);
      if (sending > before && ++begun === 1) setImmediate(nextTurn);
    }
    isPumping = false;
    if (next === waiting.length && next > 0) {
      waiting = [];
      next = 0;
    }
  }

  function nextTurn(): void {
    begun = 0;
    pump();
  }

  async function run(one: Held): Promise<void> {
    one.startedAt = monotonic();
    try {
      await deliver(one.attempt, one, world);
      delivered++;
      paces.count();
    } catch (error) {
      const { id: notificationId } = one.attempt;
      log.error({ err: error, notificationId }, "an attempt could not be settled; its lease will run out");
    }
    one.free();
    letGo(one);
  }

  function letGo(one: Held): void {
    const { seq } = one.attempt;
    heldBytes -= bytesOf(one.attempt);
    if (held.get(seq) === one) held.delete(seq);
    if (held.size === 0) whenEmpty?.();
    if (isFull && room() > 0) nap.wake();
  }

  /** One statement for everything in hand. What does not come back has been taken from us. */
  async function extend(): Promise<void> {
    if (held.size === 0) return;
    const before = [...held.values()];
    const leases = new Set(before.map(({ attempt }) => attempt.lease));
    const now = monotonic();
    try {
      const kept = new Set(await queue.extend(id, [...leases], leaseMs));
      for (const lease of kept) if (!isOver(lease)) lease.endsAt = now + leaseMs;
      for (const one of before) {
        if (kept.has(one.attempt.lease) || held.get(one.attempt.seq) !== one) continue;
        // Or settled a moment ago.
        one.abort("the lease was lost");
      }
    } catch (error) {
      log.warn({ err: error, held: held.size }, "could not extend leases");
    }
  }

  /** Once it claims no more. */
  async function drained(): Promise<void> {
    await loop;
    // A claim that was under way when the stop came.
    handBack(waiting.splice(next));
    if (held.size === 0) return;
    await new Promise<void>((resolve) => {
      whenEmpty = resolve;
    });
  }

  let extending = Promise.resolve();
  const extension = setInterval(() => {
    extending = extending.then(extend);
  }, leaseMs / 3);
  const loop = claimLoop();

  return {
    wake: nap.wake,
    // A claim that came back full left something behind.
    isFull: () => isStopping || isFull || hasBacklog,
    stats: () => ({ held: held.size, sending, delivered }),
    async stop(drainMs) {
      isStopping = true;
      nap.wake();
      handBack(waiting.splice(next));
      const abortAll = setTimeout(() => {
        for (const one of held.values()) one.abort("the worker stops");
      }, drainMs);
      let giveUp: NodeJS.Timeout | undefined;
      const tooLong = new Promise<void>((resolve) => {
        giveUp = setTimeout(resolve, drainMs + ABORTED_MS);
      });
      await Promise.race([drained().then(() => extending), tooLong]);
      clearTimeout(abortAll);
      clearTimeout(giveUp);
      clearInterval(extension);
      if (held.size > 0) log.warn({ held: held.size }, "did not end in time: left to their leases");
    },
  };
}

/** Its part of what was claimed with it. */
const bytesOf = ({ lease }: Attempt): number => lease.meanBytes;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Attempts ended per second, over the last few seconds. */
function createPace(monotonic: () => number) {
  const WINDOW_MS = 2_000;
  let windowStart = monotonic();
  let counted = 0;
  let last = 0;
  const roll = () => {
    const passed = monotonic() - windowStart;
    if (passed < WINDOW_MS) return;
    last = (counted * 1000) / passed;
    counted = 0;
    windowStart = monotonic();
  };
  return {
    count() {
      counted++;
    },
    perSecond() {
      roll();
      const passed = Math.max(100, monotonic() - windowStart);
      return Math.max(last, (counted * 1000) / passed);
    },
  };
}
