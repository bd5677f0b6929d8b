// What a worker has in hand: by seq, with what it comes to. All leases are extended together, well before they end.

import type { Lease } from "#domain/attempt.ts";
import type { Queue } from "#queue/queue.ts";
import { type Held, isOver } from "./held.ts";

export class Hand {
  readonly #held = new Map<number, Held>();
  #bytes = 0;
  #whenEmpty: (() => void) | undefined;

  get size(): number {
    return this.#held.size;
  }

  /** Of their requests. */
  get bytes(): number {
    return this.#bytes;
  }

  take(one: Held): void {
    this.#held.set(one.attempt.seq, one);
    this.#bytes += one.attempt.lease.meanBytes;
    one.share.inHand++;
    one.share.bytes += one.attempt.lease.meanBytes;
  }

  letGo(one: Held): void {
    const { seq, lease } = one.attempt;
    this.#bytes -= lease.meanBytes;
    one.share.inHand--;
    one.share.bytes -= lease.meanBytes;
    if (this.#held.get(seq) === one) this.#held.delete(seq);
    if (this.#held.size === 0) this.#whenEmpty?.();
  }

  abortAll(reason: string): void {
    for (const one of this.#held.values()) one.abort(reason);
  }

  async emptied(): Promise<void> {
    if (this.#held.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
    });
  }

  /** One statement for everything. What does not come back has been taken from us. `now` is when it was asked. */
  async extend(queue: Pick<Queue, "extend">, worker: number, leaseMs: number, now: number): Promise<void> {
    if (this.#held.size === 0) return;
    const before = [...this.#held.values()];
    const leases = new Set<Lease>(before.map(({ attempt }) => attempt.lease));
    const kept = new Set(await queue.extend(worker, [...leases], leaseMs));
    for (const lease of kept) if (!isOver(lease)) lease.endsAt = now + leaseMs;
    for (const one of before) {
      if (kept.has(one.attempt.lease) || this.#held.get(one.attempt.seq) !== one) continue;
      // Or settled a moment ago.
      one.abort("the lease was lost");
    }
  }
}
