// An attempt in hand, and the slot it is sent in.

import type { Claimed, Lease } from "#domain/attempt.ts";
import type { Passage } from "#guards/passage.ts";
import type { Slot } from "#steps/walk/world.ts";
import type { Share } from "./share.ts";
import type { Sender } from "./slots.ts";

/**
 * Providers mind their time themselves: once to be reached, once to answer; a second of them, or a second device, may begin within
 * such a time after the first. With what waiting for a turn and rendering may take before, whoever takes longer minds nothing.
 */
const TURNS_MS = 10_000;

export class Held<Stage extends Claimed = Claimed> implements Slot, Sender {
  readonly attempt: Stage;
  /** Its tenant's. */
  readonly share: Share;
  readonly timeoutMs: number;
  /** The way that it begins with, once it is prepared. */
  passage: Passage | undefined;
  /** Since when it has waited for a place there; and whether one was found. */
  parkedAt: number | undefined;
  isBack = false;
  order = 0;
  startedAt = 0;
  readonly #onFree: (one: Sender) => void;
  #abort: AbortController | undefined;
  #late: NodeJS.Timeout | undefined;
  #isFree = false;

  constructor(attempt: Stage, share: Share, timeoutMs: number, onFree: (one: Sender) => void) {
    this.attempt = attempt;
    this.share = share;
    this.timeoutMs = timeoutMs;
    this.#onFree = onFree;
  }

  get idempotencyKey(): string {
    return this.attempt.id;
  }

  get rank(): number {
    return this.attempt.rank;
  }

  /** It is the same attempt, at a later stage of its walk. */
  holds<Later extends Stage>(attempt: Later | undefined): this is Held<Later> {
    return this.attempt === attempt;
  }

  /** Most sends end without ever looking at it. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      const abort = new AbortController();
      this.#abort = abort;
      const leftMs = TURNS_MS + 4 * this.timeoutMs - (performance.now() - this.startedAt);
      this.#late = setTimeout(() => abort.abort(new Error("deadline")), Math.max(0, leftMs)).unref();
    }
    return this.#abort.signal;
  }

  free(): void {
    if (this.#isFree) return;
    this.#isFree = true;
    clearTimeout(this.#late);
    this.#onFree(this);
  }

  /** What waits for its turn begins no more. A send that has not looked at its signal yet finds it aborted when it does. */
  abort(reason: string): void {
    this.attempt.lease = { ...this.attempt.lease, endsAt: Number.NEGATIVE_INFINITY };
    this.#abort ??= new AbortController();
    this.#abort.abort(new Error(reason));
  }
}

/** For us, whatever the queue says. */
export const isOver = ({ endsAt }: Lease): boolean => endsAt === Number.NEGATIVE_INFINITY;
