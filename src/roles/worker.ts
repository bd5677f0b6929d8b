// The worker: claims, delivers, settles.
//
// It holds at most two batches at once, and never more than it can start within half a lease at its recent pace. While
// one batch is being sent the next is claimed. All leases in hand are extended together, well before they end.
// State: what is held (by seq), what is still to be started, and the pace.

import type { Attempt } from "../domain/attempt.ts";
import { PRIORITIES, type Priority } from "../domain/priority.ts";
import type { Queue } from "../queue/queue.ts";
import { deliver, type World } from "../steps/deliver.ts";
import type { Settle } from "../steps/settle.ts";
import type { Logger } from "../telemetry/log.ts";
import { createNap } from "./nap.ts";

export type WorkerOptions = {
  id: number;
  queue: Queue;
  settle: Settle;
  world: Omit<World, "settle" | "leaseMarginMs">;
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
  /** Stops claiming, hands back what has not begun, and waits for the rest; after `drainMs` it is aborted. */
  stop(drainMs: number): Promise<void>;
};

type Held = { attempt: Attempt; abort: AbortController | undefined; isStarted: boolean };

const FAILED_CLAIM_MS = 500;
const LEAST_MS = 2;
const ALL = PRIORITIES.map((_, rank) => rank);

export function startWorker(options: WorkerOptions): RunningWorker {
  const { id, queue, settle, batchSize, concurrency, leaseMs, pollMs, log } = options;
  const { monotonic } = options.world;
  const world: World = { ...options.world, settle: settle.settle, leaseMarginMs: Math.min(5_000, leaseMs / 4) };
  const held = new Map<number, Held>();
  let waiting: Held[] = [];
  let next = 0;
  let sending = 0;
  let delivered = 0;
  let isStopping = false;
  let isFull = false;
  const nap = createNap();
  let whenEmpty: (() => void) | undefined;
  const paces = createPace(monotonic);

  /** How many more may be claimed now. Small claims are put off while there is enough to do. */
  function room(): number {
    const most = Math.max(concurrency, Math.min(2 * batchSize, paces.perSecond() * (leaseMs / 2000)));
    const free = Math.floor(Math.min(batchSize, most - held.size));
    return free >= Math.max(1, Math.min(batchSize / 2, most / 4)) ? free : 0;
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
      const claimed = ranks.length > 0 ? await claim(count, ranks) : [];
      // Where there were some there may be more.
      if (claimed.length > 0) nap.wake();
      begin(claimed);
      // Under a steady trickle, claims of a few every other millisecond rather than of one every time it rings.
      if (claimed.length > 0 && claimed.length < count / 10) await pause(LEAST_MS);
      await nap.sleep(Math.max(1, Math.min(...ALL.map(dueAt)) - monotonic()));
    }
  }

  const pollOf = (rank: number): number => pollMs[PRIORITIES[rank] ?? "normal"];

  async function claim(count: number, ranks: number[]): Promise<Attempt[]> {
    try {
      return await queue.claim(id, count, leaseMs, ranks);
    } catch (error) {
      log.warn({ err: error }, "could not claim");
      await nap.sleep(FAILED_CLAIM_MS);
      return [];
    }
  }

  function begin(attempts: Attempt[]): void {
    for (const attempt of attempts) {
      const one: Held = { attempt, abort: undefined, isStarted: false };
      held.set(attempt.seq, one);
      waiting.push(one);
    }
    pump();
  }

  function pump(): void {
    while (sending < concurrency && next < waiting.length) {
      const one = waiting[next++] as Held;
      sending++;
      void run(one);
    }
    if (next === waiting.length && next > 0) {
      waiting = [];
      next = 0;
    }
  }

  async function run(one: Held): Promise<void> {
    one.isStarted = true;
    const { attempt } = one;
    const startedAt = monotonic();
    let isFree = false;
    const slot = {
      signal: () => signalOf(one, startedAt),
      free() {
        if (isFree) return;
        isFree = true;
        sending--;
        pump();
      },
    };
    try {
      await deliver(attempt, slot, world);
      delivered++;
      paces.count(1);
    } catch (error) {
      log.error({ err: error, notificationId: attempt.id }, "an attempt could not be settled; its lease will run out");
    }
    slot.free();
    letGo(one);
  }

  function letGo(one: Held): void {
    const { seq } = one.attempt;
    if (held.get(seq) === one) held.delete(seq);
    if (held.size === 0) whenEmpty?.();
    if (isFull && room() > 0) nap.wake();
  }

  function signalOf(one: Held, startedAt: number): AbortSignal {
    if (!one.abort) {
      const abort = new AbortController();
      one.abort = abort;
      const leftMs = Math.max(0, world.sendTimeoutMs - (monotonic() - startedAt));
      const timer = setTimeout(() => abort.abort(new Error("deadline")), leftMs);
      timer.unref();
    }
    return one.abort.signal;
  }

  /** One statement for everything in hand. What does not come back has been taken from us. */
  async function extend(): Promise<void> {
    if (held.size === 0) return;
    const before = [...held.values()];
    const leases = new Set(before.map(({ attempt }) => attempt.lease));
    const now = monotonic();
    try {
      const kept = new Set(
        await queue.extend(
          id,
          [...leases].map(({ token }) => token),
          leaseMs,
        ),
      );
      for (const lease of leases) lease.endsAt = now + leaseMs;
      for (const one of before) {
        if (kept.has(one.attempt.seq) || held.get(one.attempt.seq) !== one) continue;
        // Lost, or settled a moment ago; in either case it must not begin any more.
        one.attempt.lease = { ...one.attempt.lease, endsAt: Number.NEGATIVE_INFINITY };
        one.abort?.abort(new Error("the lease was lost"));
      }
    } catch (error) {
      log.warn({ err: error, held: held.size }, "could not extend leases");
    }
  }

  let extending = Promise.resolve();
  const extension = setInterval(() => {
    extending = extending.then(extend);
  }, leaseMs / 3);
  const loop = claimLoop();

  return {
    wake: nap.wake,
    isFull: () => isFull,
    stats: () => ({ held: held.size, sending, delivered }),
    async stop(drainMs) {
      isStopping = true;
      nap.wake();
      await loop;
      const unstarted = waiting.slice(next);
      waiting = [];
      next = 0;
      for (const one of unstarted) {
        const { seq, lease } = one.attempt;
        // If the database is away they come back by themselves when their leases run out.
        const back = settle.settle({ seq, token: lease.token, settlement: { to: "queued" } });
        void back.catch(() => false).then(() => letGo(one));
      }
      const abortAll = setTimeout(() => {
        for (const one of held.values()) {
          signalOf(one, monotonic());
          one.abort?.abort(new Error("the worker stops"));
        }
      }, drainMs);
      await new Promise<void>((resolve) => {
        whenEmpty = resolve;
        if (held.size === 0) resolve();
      });
      clearTimeout(abortAll);
      clearInterval(extension);
      await extending;
    },
  };
}

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
    count(n: number) {
      roll();
      counted += n;
    },
    perSecond() {
      roll();
      const passed = Math.max(100, monotonic() - windowStart);
      return Math.max(last, (counted * 1000) / passed);
    },
  };
}
