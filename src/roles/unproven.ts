// The slots of sends to receivers that have not answered lately: a quarter of a worker's, so that hosts that hang cannot fill it.
//
// Most that are new answer soon, and must not wait behind those that hang. So who has not answered after a moment is counted apart, as
// hanging, as long as these are no more than another quarter; its place is then another's. And no tenant has all of them.
// State: the sends under way, in order of their beginnings.

import { HANGS_MS } from "#guards/passage.ts";
import type { Share } from "./share.ts";
import type { Waiter } from "./turns.ts";

const PART = 1 / 4;
/** A tenant may have this many times what is free. */
const TIMES_FREE = 3;

export class Unproven {
  readonly #most: number;
  readonly #now: () => number;
  readonly #fresh = new Map<Waiter, number>();
  readonly #hanging = new Set<Waiter>();

  constructor(slots: number, now: () => number) {
    this.#most = Math.max(2, Math.floor(slots * PART));
    this.#now = now;
  }

  get free(): number {
    const until = this.#now() - HANGS_MS;
    for (const [one, begunAt] of this.#fresh) {
      if (begunAt > until || this.#hanging.size >= this.#most) break;
      this.#fresh.delete(one);
      this.#hanging.add(one);
      one.share.unproven--;
    }
    return this.#most - this.#fresh.size;
  }

  hasPlace({ unproven, weight }: Share): boolean {
    const { free } = this;
    return free >= 1 && unproven < TIMES_FREE * weight * free;
  }

  take(one: Waiter): void {
    this.#fresh.set(one, this.#now());
    one.share.unproven++;
  }

  /** False: it was none of them. */
  leave(one: Waiter): boolean {
    if (this.#fresh.delete(one)) {
      one.share.unproven--;
      return true;
    }
    return this.#hanging.delete(one);
  }
}
