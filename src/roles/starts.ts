// Begins what was prepared: so many at once, and a few in each turn of the event loop.
//
// State: what waits to be begun, how many are being sent, and how many of them were begun in this turn.

import type { Prepared } from "#steps/walk/prepare.ts";
import type { Held } from "./held.ts";

export type Ready = Held<Prepared>;

/**
 * Answers that come together would otherwise lead to requests that leave together, only once all of them are made, whose
 * answers come together again: in a convoy of a hundred a provider of 20 ms seemed to take 27.
 */
const MOST_BEGUN = 4;

export class Starts {
  readonly #concurrency: number;
  readonly #run: (one: Ready) => void;
  #waiting: Ready[] = [];
  #next = 0;
  #sending = 0;
  /** Begun in this turn of the event loop, and waiting for an answer. */
  #begun = 0;
  #isPumping = false;
  #isStopped = false;

  constructor(concurrency: number, run: (one: Ready) => void) {
    this.#concurrency = concurrency;
    this.#run = run;
  }

  get sending(): number {
    return this.#sending;
  }

  /** Each is begun when its turn comes. */
  add(one: Ready): void {
    this.#waiting.push(one);
  }

  /** Begins no more; answers with what is left. */
  stop(): Ready[] {
    this.#isStopped = true;
    return this.#waiting.splice(this.#next);
  }

  freeSlot(): void {
    this.#sending--;
    this.pump();
  }

  pump(): void {
    // A provider that answers at once frees its slot while we are in here.
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (!this.#isStopped && this.#sending < this.#concurrency && this.#begun < MOST_BEGUN) {
      const one = this.#waiting[this.#next];
      if (!one) break;
      this.#next++;
      const before = this.#sending++;
      this.#run(one);
      if (this.#sending > before && ++this.#begun === 1) setImmediate(this.#nextTurn);
    }
    this.#isPumping = false;
    if (this.#next === this.#waiting.length && this.#next > 0) {
      this.#waiting = [];
      this.#next = 0;
    }
  }

  readonly #nextTurn = (): void => {
    this.#begun = 0;
    this.pump();
  };
}
