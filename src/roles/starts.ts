// Begins what was prepared, in turn: as many at once as there are slots, and a few in each turn of the event loop.
//
// State: what waits to be begun, how many have come, and how many were begun in this turn.

import type { Prepared } from "#steps/walk/prepare.ts";
import type { Held } from "./held.ts";
import { type Sender, Slots } from "./slots.ts";
import { Turns, type Verdict } from "./turns.ts";
import { SEEN_MS, Ways } from "./ways.ts";

export type Ready = Held<Prepared>;

/**
 * Answers that come together would otherwise lead to requests that leave together, only once all of them are made, whose
 * answers come together again: in a convoy of a hundred a provider of 20 ms seemed to take 27.
 */
const MOST_BEGUN = 4;
/** Of those that are answered at once: then whatever came meanwhile has its turn, urgent ones too. */
const MOST_ENDED = 500;

export type StartsOptions = {
  concurrency: number;
  /** Of the slots, the part of one way. */
  wayPart: number;
  monotonic: () => number;
  run: (one: Ready) => void;
  /** It holds neither a slot nor a place in line: it is to come back after so long. */
  sendAway: (one: Ready, waitMs: number) => void;
};

export class Starts {
  readonly #slots: Slots;
  readonly #ways: Ways;
  readonly #run: (one: Ready) => void;
  readonly #monotonic: () => number;
  readonly #turns = new Turns<Ready>();
  /** Begun in this turn of the event loop, and waiting for an answer. */
  #begun = 0;
  /** Begun in it and answered at once. */
  #ended = 0;
  #added = 0;
  #isPumping = false;
  #isStopped = false;
  #seeing: NodeJS.Timeout | undefined;
  readonly #judge = (one: Ready): Verdict => {
    const verdict = this.#slots.judge(one);
    return verdict === "go" && !this.#ways.hasPlace(one) ? "way" : verdict;
  };
  readonly #stepOut = (one: Ready) => this.#ways.park(one);

  constructor({ concurrency, wayPart, monotonic, run, sendAway }: StartsOptions) {
    this.#slots = new Slots(concurrency, wayPart);
    this.#ways = new Ways({
      slots: this.#slots,
      monotonic,
      comeBack: (one) => this.#turns.putBack(one),
      sendAway: (one, waitMs) => {
        leaveLine(one);
        sendAway(one, waitMs);
      },
      isWanted: (except) => this.#turns.some(({ passage }) => passage !== except),
    });
    this.#run = run;
    this.#monotonic = monotonic;
  }

  get sending(): number {
    return this.#slots.taken;
  }

  get slots(): number {
    return this.#slots.all;
  }

  /** Each is begun when its turn comes. */
  add(one: Ready): void {
    one.share.waiting[one.rank] = (one.share.waiting[one.rank] ?? 0) + 1;
    one.order = this.#added++;
    this.#turns.add(one);
  }

  /** Begins no more; answers with what is left. */
  stop(): Ready[] {
    this.#isStopped = true;
    return this.takeOut(() => true);
  }

  /** Those that are to wait here no longer. */
  takeOut(isOver: (one: Ready) => boolean): Ready[] {
    const taken = [...this.#turns.take(isOver), ...this.#ways.takeOut(isOver)];
    for (const one of taken) leaveLine(one);
    return taken;
  }

  /** Those that were claimed so long ago. */
  takeOld(ms: number): Ready[] {
    const since = this.#monotonic() - ms;
    return this.takeOut(({ attempt: { lease } }) => lease.claimedAt < since);
  }

  readonly freeSlot = (one: Sender): void => {
    this.#slots.free(one);
    this.#ways.free(one);
    this.#turns.recall(one.share);
    this.pump();
  };

  pump(): void {
    // A provider that answers at once frees its slot while we are in here.
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (!this.#isStopped && this.#begun < MOST_BEGUN && this.#ended < MOST_ENDED) {
      const one = this.#turns.next(this.#judge, this.#stepOut);
      if (!one) break;
      leaveLine(one);
      if (this.#begun + this.#ended === 0) setImmediate(this.#nextTurn);
      this.#slots.take(one);
      this.#ways.take(one);
      const before = this.#slots.taken;
      this.#run(one);
      if (this.#slots.taken < before) this.#ended++;
      else this.#begun++;
    }
    this.#isPumping = false;
    if (!this.#ways.isEmpty) this.#seeing ??= setTimeout(afterAnswers, SEEN_MS, this.#see);
  }

  readonly #see = (): void => {
    this.#seeing = undefined;
    this.#ways.see();
    this.pump();
  };

  readonly #nextTurn = (): void => {
    this.#begun = this.#ended = 0;
    this.pump();
  };
}

/** Timers come first after this process stood still: what was answered meanwhile is read before anybody is taken to be silent. */
const afterAnswers = (then: () => void): void => void setImmediate(() => setImmediate(then));

function leaveLine({ share, rank }: Ready): void {
  share.waiting[rank] = (share.waiting[rank] ?? 0) - 1;
}
