// The slots of a worker, and who may take one.
//
// `concurrency` is what one tenant has at once through one way (guards/passage.ts) when it is alone. There are a third more: a tenant may
// begin another only while it holds less than three times what is free, by its weight, so that something is free for
// whoever comes next, however many have come before (dynamic thresholds, Choudhury and Hahne 1998: of two that want all each gets
// three sevenths). A way may have eight times what is free for all its tenants, and twice that for one that holds next to nothing. It
// has its part whatever is free, and where it holds less than that its tenant may have four times what is free: so a tenant's mail
// does not wait for its own slow webhooks. All receivers of a tenant are one way here.
// Some more slots are a reserve that only urgent and high ones use, so that these do not wait for the slowest of the others to end.
// State: how many are taken; each tenant's part is its share's.

import { isHigh } from "#domain/priority.ts";
import type { Passage } from "#guards/passage.ts";
import type { Verdict, Waiter } from "./turns.ts";

/** One may have this many times what is free; and the tenant of a way that holds little so many. */
const TIMES_FREE = 3;
const MOST_TIMES_FREE = 4;
/** And a way so many, where its tenant holds much or little. */
const WAY_TIMES_FREE = { much: 8, little: 16 };
const RESERVE = 1 / 8;
const LEAST_RESERVE = 2;

/** One that waits for a slot, and the way it will take, where that is known. */
export type Sender = Waiter & { readonly passage: Passage | undefined };

export class Slots {
  readonly #concurrency: number;
  readonly #reserve: number;
  /** Of a way, while others are at work. */
  readonly #part: number;
  readonly general: number;
  #taken = 0;

  constructor(concurrency: number, wayPart: number) {
    this.#concurrency = concurrency;
    this.general = Math.ceil(concurrency * (1 + 1 / TIMES_FREE));
    this.#reserve = Math.max(LEAST_RESERVE, Math.ceil(concurrency * RESERVE));
    this.#part = this.general * wayPart;
  }

  get taken(): number {
    return this.#taken;
  }

  /** How many there are. */
  get all(): number {
    return this.general + this.#reserve;
  }

  /** Whether its tenant may begin another, through a way that holds little. */
  judgeTenant({ rank, share }: Waiter): Verdict {
    const free = this.#free(rank);
    if (free < 1) return "slot";
    // What a tenant has of lower work under way is nothing to its urgent ones.
    return (isHigh(rank) ? share.heldHigh : share.held) < MOST_TIMES_FREE * share.weight * free ? "go" : "tenant";
  }

  /** And through this one. A tenant without any way is judged as if it had one alone. */
  judge(one: Sender): Verdict {
    const verdict = this.judgeTenant(one);
    if (verdict !== "go") return verdict;
    const { rank, share, passage } = one;
    const isFirst = isHigh(rank);
    const free = this.#free(rank);
    const most = TIMES_FREE * free;
    const held = isFirst ? share.heldHigh : share.held;
    if (!passage || isFirst) return held < this.#concurrency && held < most * share.weight ? "go" : "tenant";
    const through = passage.isReceiver ? share.atReceivers : passage.held;
    if (through < this.#part) return "go";
    if (held >= this.#concurrency || held >= most * share.weight) return "way";
    return through < WAY_TIMES_FREE[2 * held < free ? "little" : "much"] * free ? "go" : "way";
  }

  take({ rank, share, passage }: Sender): void {
    this.#taken++;
    share.held++;
    if (isHigh(rank)) share.heldHigh++;
    if (passage?.isReceiver) share.atReceivers++;
  }

  free({ rank, share, passage }: Sender): void {
    this.#taken--;
    share.held--;
    if (isHigh(rank)) share.heldHigh--;
    if (passage?.isReceiver) share.atReceivers--;
  }

  #free(rank: number): number {
    return (isHigh(rank) ? this.all : this.general) - this.#taken;
  }
}
