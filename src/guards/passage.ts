// What a worker asks of a way before it begins a send through it: whether there is a place, and who may wait for one.
//
// A way is an account with a provider, or a tenant's receiver. Of receivers nobody knows what they are until they answer: one that
// has not done so lately gets one at a time, two with an urgent one, so that a tenant's many hosts that hang hold few slots. What waits
// for a receiver's first answer is soon sent away, for about as long as that has been silent; where many wait, the last of them sooner, as
// whoever waits takes room from what the tenant sends elsewhere.
// State: the slots that are held by sends begun through it, when it last answered, the pace.

import { isHigh } from "#domain/priority.ts";
import { keptOf } from "./abreast.ts";
import { Away, MOST_WAIT_MS } from "./away.ts";
import type { Turn } from "./guard.ts";

/** A receiver's success counts for so long; a failure ends it. */
const PROVEN_MS = 600_000;
/** Whoever answers for the first time does so sooner, or is taken for one that hangs. */
export const HANGS_MS = 200;
const LEAST_AWAY_MS = 1_000;
/** Those who come back to one that hangs come one after the other, and not after more than so long. */
const APART_MS = 5;
const MOST_AWAY_MS = 600_000;

export class Passage {
  readonly isReceiver: boolean;
  readonly #most: number;
  /** For all but urgent and high ones. */
  readonly #others: number;
  readonly #isShut: () => boolean;
  readonly #now: () => number;
  readonly #away: Away;
  #held = 0;
  #provenUntil = Number.NEGATIVE_INFINITY;
  /** Something is under way since, without an answer. */
  #silentSince = 0;
  #awayUntil = 0;

  constructor(most: number, isReceiver: boolean, isShut: () => boolean, now: () => number) {
    this.#most = most;
    this.#others = most - keptOf(most);
    this.isReceiver = isReceiver;
    this.#isShut = isShut;
    this.#now = now;
    this.#away = new Away(now);
  }

  get held(): number {
    return this.#held;
  }

  /** It is known to answer. An account is taken to. */
  get isProven(): boolean {
    return !this.isReceiver || this.#provenUntil > this.#now();
  }

  /** A breaker or a pause is in the way: who begins is turned away at once. */
  get isShut(): boolean {
    return this.#isShut();
  }

  hasPlace(rank: number): boolean {
    return this.#held < this.#places(rank);
  }

  take(): void {
    if (this.#held++ === 0 && this.isReceiver) this.#silentSince = this.#now();
    if (this.#held === this.#places()) this.#away.filled();
  }

  free(): void {
    if (this.#held >= this.#places()) this.#away.answered();
    this.#held--;
    if (this.isReceiver) this.#silentSince = this.#now();
  }

  /** It has answered, whatever it thought of the message. */
  prove(): void {
    this.#provenUntil = this.#now() + PROVEN_MS;
    this.#awayUntil = 0;
  }

  /** It has not, or that it cannot. */
  doubt(): void {
    this.#provenUntil = Number.NEGATIVE_INFINITY;
  }

  /** For one that waits for a place, for so long, behind so many: 0, it may wait on; else how long to stay away. */
  awayMs(turn: Turn, ahead: number, waitedMs: number): number {
    if (this.isProven) {
      const places = this.#places();
      const isOver = waitedMs > MOST_WAIT_MS || this.#away.isTooLong(turn, ahead, places);
      return isOver ? this.#away.send(turn, ahead, places) : 0;
    }
    const silentMs = this.#held > 0 ? this.#now() - this.#silentSince : 0;
    // As it would take for those before it if an answer came now.
    const expectedMs = (silentMs * ahead) / this.#most;
    return silentMs < HANGS_MS && expectedMs < HANGS_MS ? 0 : this.#oneByOne(silentMs);
  }

  /** For one that waits for a slot: how long to stay away. */
  laterMs(): number {
    return this.#oneByOne(LEAST_AWAY_MS);
  }

  #oneByOne(leastMs: number): number {
    const at = this.#now();
    const soonest = at + Math.max(LEAST_AWAY_MS, leastMs);
    this.#awayUntil = Math.min(at + MOST_AWAY_MS, Math.max(this.#awayUntil, soonest) + APART_MS);
    return this.#awayUntil - at;
  }

  #places(rank?: number): number {
    const isFirst = rank !== undefined && isHigh(rank);
    if (!this.isProven) return isFirst ? 2 : 1;
    return isFirst ? this.#most : this.#others;
  }
}
