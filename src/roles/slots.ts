// The slots of a worker, and who may take one.
//
// `concurrency` is what one tenant has at once when it is alone. There are a third more: a tenant may begin another only while it holds
// less than three times what is free, by its weight, so that something is free for whoever comes next, however many have come
// before (dynamic thresholds, Choudhury and Hahne 1998: of two that want all each gets three sevenths). Some more are a reserve that
// only urgent and high ones use, so that these do not wait for the slowest of the others to end.
// State: how many are taken; each tenant's part is its share's.

import { HIGH } from "./share.ts";
import type { Verdict, Waiter } from "./turns.ts";

/** A tenant may have this many times what is free. */
const TIMES_FREE = 3;
const RESERVE = 1 / 8;
const LEAST_RESERVE = 2;

export class Slots {
  readonly #concurrency: number;
  readonly #general: number;
  readonly #reserve: number;
  #taken = 0;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
    this.#general = Math.ceil(concurrency * (1 + 1 / TIMES_FREE));
    this.#reserve = Math.max(LEAST_RESERVE, Math.ceil(concurrency * RESERVE));
  }

  get taken(): number {
    return this.#taken;
  }

  /** How many there are. */
  get all(): number {
    return this.#general + this.#reserve;
  }

  judge({ rank, share }: Waiter): Verdict {
    const isHigh = rank <= HIGH;
    const free = this.#general + (isHigh ? this.#reserve : 0) - this.#taken;
    if (free < 1) return "slot";
    // What it has of lower work under way is nothing to its urgent ones.
    const held = isHigh ? share.heldHigh : share.held;
    return held < this.#concurrency && held < TIMES_FREE * share.weight * free ? "go" : "tenant";
  }

  take({ rank, share }: Waiter): void {
    this.#taken++;
    share.held++;
    if (rank <= HIGH) share.heldHigh++;
  }

  free({ rank, share }: Waiter): void {
    this.#taken--;
    share.held--;
    if (rank <= HIGH) share.heldHigh--;
  }
}
