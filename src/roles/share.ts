// What a tenant has in a worker: how much of it waits, and how many slots it holds.

import { CALLBACK_RANK, RANKS } from "#domain/priority.ts";

export class Share {
  readonly tenant: number;
  /** Of its turns. */
  weight = 1;
  /** By lane: claimed and not begun. */
  readonly waiting = [...RANKS, CALLBACK_RANK].map(() => 0);
  /** Its requests in hand, prepared or begun or neither, and what they come to. */
  inHand = 0;
  bytes = 0;
  /** Slots, and those of them that urgent and high ones hold. */
  held = 0;
  heldHigh = 0;
  /** Of the slots, those of sends to its receivers; and of these the ones that may yet turn out to hang. */
  atReceivers = 0;
  unproven = 0;
  /** Until then its sends to receivers do not wait for slots: those that did found none. */
  crowdedUntil = 0;

  constructor(tenant: number) {
    this.tenant = tenant;
  }

  get isIdle(): boolean {
    return this.inHand === 0 && this.held === 0;
  }
}

/** Those with nothing here are forgotten when there are so many, or twice as many as were left the last time. */
const MOST_IDLE = 1_000;

export class Shares {
  readonly #shares = new Map<number, Share>();
  #weights: ReadonlyMap<number, number> = new Map();
  #sweptAbove = MOST_IDLE;

  of(tenant: number): Share {
    const found = this.#shares.get(tenant);
    if (found) return found;
    if (this.#shares.size >= this.#sweptAbove) this.#forgetIdle();
    const share = new Share(tenant);
    share.weight = this.#weights.get(tenant) ?? 1;
    this.#shares.set(tenant, share);
    return share;
  }

  all(): Iterable<Share> {
    return this.#shares.values();
  }

  /** Of those whose weight is not 1. */
  weigh(weights: ReadonlyMap<number, number>): void {
    this.#weights = weights;
    for (const share of this.#shares.values()) share.weight = weights.get(share.tenant) ?? 1;
  }

  #forgetIdle(): void {
    for (const [tenant, share] of this.#shares) if (share.isIdle) this.#shares.delete(tenant);
    this.#sweptAbove = Math.max(MOST_IDLE, 2 * this.#shares.size);
  }
}
