// Who waits for a place at a server, and who had better come back later, at an instant of its own.
//
// A short wait is spent where one is; who would wait longer is told when to come back, by the pace at which answers come: so a slow
// server keeps few of those who wait. State: the pace, and of those who were sent away when the last comes back.

import type { Turn } from "./guard.ts";

/** Who would wait for longer than this comes back later; and sooner where answers fail to come at their pace. */
const PATIENCE_MS = 2_000;
const SILENCE_MS = 500;
/** Who was wrong about that waits no longer than this. */
export const MOST_WAIT_MS = 4_000;
const MOST_AWAY_MS = 600_000;
/** The pace is a mean over about this many answers. */
const ANSWERS = 16;

export class Away {
  readonly #now: () => number;
  /** Between two answers while all places are taken. */
  #everyMs = 0;
  #answeredAt = 0;
  /** Of those who were sent away: when the last comes back, the newest and the most urgent of them. */
  #until = 0;
  #seq = 0;
  #rank = 0;
  /** When the last was sent away, and how many were before it then, itself included. */
  #sentAt = 0;
  #before = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** All places are taken: from now on answers are counted. */
  filled(): void {
    this.#answeredAt = this.#now();
  }

  /** While all places were taken. */
  answered(): void {
    const at = this.#now();
    this.#everyMs += (at - this.#answeredAt - this.#everyMs) / ANSWERS;
    this.#answeredAt = at;
  }

  /** Whether one who comes behind so many others had better not wait. */
  isTooLong({ seq, rank }: Turn, ahead: number, places: number): boolean {
    if (ahead * this.#everyMs > PATIENCE_MS || ahead * this.#silence(places) > SILENCE_MS) return true;
    // Behind those who were sent away before: newer, and no more urgent. Unless answers come faster by now: what a moment's silence had put
    // off would put off all that come after it, and these again.
    const at = this.#now();
    const awayMs = Math.min(this.#until - at, this.#left(at) * this.#pace(places));
    return awayMs > PATIENCE_MS && seq > this.#seq && rank >= this.#rank;
  }

  /** How long it is to stay away. */
  send({ seq, rank }: Turn, ahead: number, places: number): number {
    const at = this.#now();
    const pace = this.#pace(places);
    const isFirst = this.#until <= at;
    this.#before = Math.max(ahead, this.#left(at)) + 1;
    this.#sentAt = at;
    this.#until = Math.min(at + MOST_AWAY_MS, Math.max(this.#until, at + ahead * pace) + pace);
    this.#seq = isFirst ? seq : Math.max(this.#seq, seq);
    this.#rank = isFirst ? rank : Math.min(this.#rank, rank);
    return this.#until - at;
  }

  /** Of those who were before the last that was sent away, the ones who are not back. */
  #left(at: number): number {
    return this.#until <= at ? 0 : (this.#before * (this.#until - at)) / (this.#until - this.#sentAt);
  }

  /** A server that has fallen silent has no pace: then what it has been silent for counts. */
  #pace(places: number): number {
    return Math.max(this.#everyMs, this.#silence(places));
  }

  #silence(places: number): number {
    return (this.#now() - this.#answeredAt) / places;
  }
}
