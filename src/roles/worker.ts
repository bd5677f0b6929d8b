// The worker: claims, delivers, settles.
//
// What it holds waits in turn (turns.ts) for a slot (slots.ts). How much that is, and whose, appetite.ts says: while one batch is being
// sent the next is claimed, and a worker that has enough of some goes on looking for what comes before it, or is somebody else's. Of
// requests it holds neither large ones without end nor more than four batches.
// State: what is in hand, what is still to be started, and the pace. The file is long because every part of it changes that state.

import { setTimeout as pause } from "node:timers/promises";
import { type Claimed, handedBack } from "#domain/attempt.ts";
import { isHigh, type Lanes } from "#domain/priority.ts";
import type { Queue } from "#queue/queue.ts";
import { conclude, deliver } from "#steps/walk/deliver.ts";
import { firstWay } from "#steps/walk/first-way.ts";
import { type Prepared, prepare } from "#steps/walk/prepare.ts";
import { settle } from "#steps/walk/settle.ts";
import type { World } from "#steps/walk/world.ts";
import { createNap } from "#timing/nap.ts";
import { type Ask, among, asksFor, hasOpened, isForAll, isForLanes } from "./appetite.ts";
import { Hand } from "./hand.ts";
import { Held } from "./held.ts";
import { Pace } from "./pace.ts";
import { Shares } from "./share.ts";
import { type Ready, Starts } from "./starts.ts";

export type WorkerOptions = {
  id: number;
  queue: Pick<Queue, "claim" | "extend">;
  world: World;
  sendTimeoutMs: number;
  /** The lanes it takes, the highest first. */
  ranks: readonly number[];
  batchSize: number;
  concurrency: number;
  /** Of the slots, the part that one way has while others are at work. */
  wayPart: number;
  leaseMs: number;
  pollMs: (rank: number) => number;
};

export type RunningWorker = {
  /** Something may be ready, of lower lanes only or of any. */
  wake(lanes?: Lanes): void;
  /** Has enough, at least of some: somebody else had better look too. */
  isFull(): boolean;
  /** Of the tenants whose weight is not 1. */
  weigh(weights: ReadonlyMap<number, number>): void;
  stats(): { held: number; sending: number; delivered: number };
  /**
   * Stops claiming and hands back what has not begun, both at once, and waits for the rest. After `drainMs` that is aborted; what
   * does not end even then is left to its lease.
   */
  stop(drainMs: number): Promise<void>;
};

const FAILED_CLAIM_MS = 500;
/** For what sends came to that were aborted. */
const ABORTED_MS = 1_000;
const LEAST_MS = 2;
/** Of a burst the first are begun after a millisecond, while PostgreSQL is busy with the rest of a batch. */
const FIRST_CLAIM = 100;
/** Who has enough of some looks for the others no more often than this, however often it rings. */
const LOOK_MS = 20;
/** And for urgent and high ones, when these have rung. */
const OVERTAKE_MS = 10;
/** Until it rings. */
const LONG_MS = 60_000;
const MOST_BATCHES = 4;
/** While some urgent or high ones come between lower ones, claims are half as large: everybody waits for a shorter time until their answers are read. */
const HIGH_CAME_MS = 1_000;
/** Of requests in hand. With what is made of them to send, several times as much memory. A quarter is for who has few. */
const MOST_BYTES = 36 * 1024 * 1024;
/** Urgent and high ones may be so much more. */
const MOST_LOAD = 1.5;
/** Where a lane is asked of nobody: what has not begun within this goes back, as it may wait for one that hangs. */
const STUCK_MS = 2_000;
/** Whether there is room again is seen after so many were begun or ended, for each slot. */
const SEEN_EVERY = 1 / 20;

export function startWorker(options: WorkerOptions): RunningWorker {
  const worker = new Worker(options);
  return {
    wake: (lanes) => worker.wake(lanes),
    isFull: () => worker.isFull(),
    weigh: (weights) => worker.weigh(weights),
    stats: () => worker.stats(),
    stop: (drainMs) => worker.stop(drainMs),
  };
}

class Worker {
  readonly #nap = createNap();
  readonly #rung = createNap();
  readonly #options: WorkerOptions;
  readonly #hand = new Hand();
  readonly #starts: Starts;
  readonly #pace: Pace;
  readonly #shares = new Shares();
  readonly #mostHeld: number;
  /** There is room again for some of which it had enough. */
  readonly #hasRoom = createNap();
  readonly #extension: NodeJS.Timeout;
  readonly #loops: Promise<unknown>;
  #extending = Promise.resolve();
  #delivered = 0;
  #isStopping = false;
  #isFull = false;
  /** Of the last round. */
  #asked: readonly Ask[] = [];
  #hasBacklog = false;
  #isClaimingMany = false;
  #highCameAt = Number.NEGATIVE_INFINITY;
  /** A claim of a few urgent and high ones, or the last of them. */
  #overtaking: Promise<unknown> = Promise.resolve();
  #unseen = 0;

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { concurrency, wayPart, world } = options;
    this.#starts = new Starts({
      concurrency,
      wayPart,
      monotonic: world.monotonic,
      run: (one) => void this.#run(one),
      sendAway: (one, waitMs) => void this.#sendAway(one, waitMs),
    });
    this.#mostHeld = this.#starts.slots + Math.max(MOST_BATCHES * options.batchSize, options.concurrency);
    this.#pace = new Pace(options.world.monotonic);
    this.#extension = setInterval(() => {
      this.#extending = this.#extending.then(() => this.#extend());
    }, options.leaseMs / 3);
    this.#loops = Promise.all([this.#claimLoop(), this.#overtakeLoop()]);
  }

  /** Something may be ready. Whoever looks for urgent and high ones goes first. */
  wake(lanes: Lanes = "any"): void {
    if (lanes === "any") this.#rung.wake();
    this.#nap.wake();
  }

  /** A claim that came back full left something behind. */
  isFull(): boolean {
    return this.#isStopping || this.#isFull || this.#hasBacklog;
  }

  weigh(weights: ReadonlyMap<number, number>): void {
    this.#shares.weigh(weights);
  }

  stats() {
    return { held: this.#hand.size, sending: this.#starts.sending, delivered: this.#delivered };
  }

  /** What is to be claimed now. */
  #asks(): Ask[] {
    const load = Math.max(this.#hand.bytes / MOST_BYTES, this.#hand.size / this.#mostHeld);
    if (load >= MOST_LOAD) return [];
    const freeBytes = 0.75 * MOST_BYTES - this.#hand.bytes;
    const asks = asksFor(this.#shares.all(), { ...this.#options, perSecond: this.#pace.perSecond(), freeBytes });
    return load < 1 ? asks : among(asks, isHigh);
  }

  async #claimLoop(): Promise<void> {
    const { world, ranks: all, pollMs } = this.#options;
    const lastPolls: number[] = [];
    const dueAt = (rank: number) => (lastPolls[rank] ?? Number.NEGATIVE_INFINITY) + pollMs(rank);
    while (!this.#isStopping) {
      this.#hasRoom.wasWoken();
      const asks = this.#asks();
      this.#asked = asks;
      this.#isFull = !isForAll(asks, all);
      const now = world.monotonic();
      if (!isForLanes(asks, all)) this.#handBack(this.#starts.takeOld(STUCK_MS));
      const ranks = this.#nap.wasWoken() ? all : all.filter((rank) => dueAt(rank) <= now);
      for (const rank of ranks) lastPolls[rank] = now;
      // Where one left more behind, that goes before the lanes below.
      for (const ask of among(asks, (rank) => ranks.includes(rank))) if (await this.#look(ask)) break;
      // What rings meanwhile is heard then.
      if (this.#isFull) await this.#hasRoom.sleep(LOOK_MS);
      await this.#nap.sleep(Math.max(1, Math.min(...all.map(dueAt)) - world.monotonic()));
    }
  }

  /** What rings while there is a backlog, or while there is enough of some, does not wait for a large claim: urgent and high ones are looked for before it or beside it, a few at a time. */
  async #overtakeLoop(): Promise<void> {
    const ranks = this.#options.ranks.filter(isHigh);
    if (ranks.length === 0 || ranks.length === this.#options.ranks.length) return;
    while (!this.#isStopping) {
      this.#rung.wasWoken();
      const [ask] = this.#isClaimingMany || this.#hasBacklog || this.#isFull ? among(this.#asks(), isHigh) : [];
      if (ask) {
        const claiming = this.#claim(Math.min(ask.count, FIRST_CLAIM), ask);
        this.#overtaking = claiming;
        const claimed = (await claiming) ?? [];
        if (claimed.length > 0) this.#highCameAt = this.#options.world.monotonic();
        await this.#start(claimed);
      }
      await pause(OVERTAKE_MS);
      await this.#rung.sleep(LONG_MS);
    }
  }

  /** One claim, and the start of what it brings. True: there is more, or there may be. */
  async #look(ask: Ask): Promise<boolean> {
    const { batchSize, world } = this.#options;
    const most = world.monotonic() - this.#highCameAt < HIGH_CAME_MS ? batchSize / 2 : batchSize;
    const count = Math.ceil(Math.min(ask.count, this.#isFull || this.#hasBacklog ? most : FIRST_CLAIM));
    // Or it would lock what that is for, and answer long after it.
    if (count > FIRST_CLAIM) await this.#overtaking;
    this.#isClaimingMany = count > FIRST_CLAIM;
    const claimed = await this.#claim(count, ask);
    if (!claimed) {
      // What is in these lanes nobody knows, so those below them are not looked at before.
      this.#isClaimingMany = false;
      this.#nap.wake();
      return true;
    }
    if (!this.#isFull) this.#hasBacklog = claimed.length === count;
    const [first, last] = [claimed[0], claimed.at(-1)];
    if (first && last && isHigh(first.rank) && !isHigh(last.rank)) this.#highCameAt = world.monotonic();
    // Where there were some there may be more.
    if (claimed.length > 0) this.#nap.wake();
    const isStarted = await this.#start(claimed);
    this.#isClaimingMany = false;
    if (!isStarted) return false;
    // Under a steady trickle, claims of a few every other millisecond rather than of one every time it rings.
    if (claimed.length > 0 && claimed.length < Math.min(count, batchSize / 10)) await pause(LEAST_MS);
    return claimed.length === count;
  }

  /** False: it could not be looked at, and was handed back. */
  async #start(claimed: readonly Claimed[]): Promise<boolean> {
    const { world } = this.#options;
    const taken = claimed.map((attempt) => this.#hold(attempt));
    let prepared: readonly Prepared[];
    try {
      prepared = await prepare(claimed, world);
    } catch (error) {
      // What could not be looked at is not sent.
      world.facts.unprepared(error);
      this.#handBack(taken);
      await pause(FAILED_CLAIM_MS);
      return false;
    }
    this.#begin(taken, prepared);
    return true;
  }

  /** `prepared` are the same attempts, in the same order. */
  #begin(taken: readonly Held[], prepared: readonly Prepared[]): void {
    for (const [n, one] of taken.entries()) {
      if (!one.holds(prepared[n])) continue;
      one.passage = firstWay(one.attempt, this.#options.world);
      this.#starts.add(one);
    }
    this.#starts.pump();
  }

  /** Undefined: it failed, and has rested since. */
  async #claim(count: number, { ranks, notTenants }: Ask): Promise<Claimed[] | undefined> {
    const { id, queue, leaseMs, world } = this.#options;
    try {
      return await queue.claim(id, count, leaseMs, { ranks, notTenants });
    } catch (error) {
      world.facts.claimFailed(error);
      await pause(FAILED_CLAIM_MS);
      return undefined;
    }
  }

  #hold(attempt: Claimed): Held {
    const { sendTimeoutMs } = this.#options;
    const one = new Held(attempt, this.#shares.of(attempt.tenant), sendTimeoutMs, this.#starts.freeSlot);
    this.#hand.take(one);
    return one;
  }

  /** Held until that is written, so that nobody takes it for lost; but it never comes among those that are begun. */
  #handBack(unbegun: readonly Held[]): void {
    for (const one of unbegun) {
      // If the database is away they come back by themselves when their leases run out.
      const back = settle(handedBack(one.attempt), this.#options.world.settlements);
      void back.catch(() => undefined).then(() => this.#letGo(one));
    }
  }

  async #run(one: Ready): Promise<void> {
    const { world } = this.#options;
    one.startedAt = world.monotonic();
    this.#seeRoom();
    try {
      await deliver(one.attempt, one, world);
      this.#delivered++;
      this.#pace.count();
    } catch (error) {
      world.facts.unsettled(one.attempt, error);
    }
    one.free();
    this.#letGo(one);
  }

  /** There is no place at its way, and will not be soon. */
  async #sendAway(one: Ready, waitMs: number): Promise<void> {
    const { world } = this.#options;
    world.facts.guarded({ kind: "limited", by: "abreast", waitMs });
    const outcome = { kind: "postponed" as const, waitMs, reason: "as many as go that way at a time are under way" };
    try {
      await conclude(one.attempt, { outcome }, 0, world);
    } catch (error) {
      world.facts.unsettled(one.attempt, error);
    }
    this.#letGo(one);
  }

  #letGo(one: Held): void {
    this.#hand.letGo(one);
    this.#seeRoom();
  }

  /** Where it has enough of some, whether it has room for any of them again. */
  #seeRoom(): void {
    if (!this.#isFull || ++this.#unseen < SEEN_EVERY * this.#options.concurrency) return;
    this.#unseen = 0;
    if (!hasOpened(this.#asked, this.#asks())) return;
    this.#hasRoom.wake();
    this.#nap.wake();
  }

  async #extend(): Promise<void> {
    const { id, queue, leaseMs, world } = this.#options;
    this.#handBack(this.#starts.takeOld(leaseMs / 2));
    try {
      await this.#hand.extend(queue, id, leaseMs, world.monotonic());
    } catch (error) {
      world.facts.unextended(this.#hand.size, error);
    }
  }

  async stop(drainMs: number): Promise<void> {
    this.#isStopping = true;
    this.wake();
    this.#hasRoom.wake();
    this.#handBack(this.#starts.stop());
    const abortAll = setTimeout(() => this.#hand.abortAll("the worker stops"), drainMs);
    const tooLong = pause(drainMs + ABORTED_MS, undefined, { ref: false });
    await Promise.race([this.#drained().then(() => this.#extending), tooLong]);
    clearTimeout(abortAll);
    clearInterval(this.#extension);
    if (this.#hand.size > 0) this.#options.world.facts.leftToLeases(this.#hand.size);
  }

  /** Once it claims no more. */
  async #drained(): Promise<void> {
    await this.#loops;
    // A claim that was under way when the stop came.
    this.#handBack(this.#starts.stop());
    await this.#hand.emptied();
  }
}
