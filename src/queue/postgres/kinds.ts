// Which kinds of facts a batch of settlements writes, as they are counted: so that whoever counts need not look each of them up.

import type { Ended } from "#domain/attempt.ts";
import { placeOf } from "#domain/histogram.ts";

/** Each has its number, from 1. */
export class Kinds {
  readonly #numbers = new Map<string, number>();
  readonly #kinds: unknown[] = [];
  #isWhole = true;

  /** Undefined where nothing is written, or where it is told to nobody. */
  of({ attempt, settlement, line }: Ended): number | undefined {
    if (!line || attempt.tenant <= 0) return undefined;
    const { tenant, request, rank } = attempt;
    // Nothing that came through a door. Null would be no kind: nothing would be counted any more.
    if (request.channel === undefined) this.#isWhole = false;
    const { provider = "", outcome, latencyMs } = line;
    const place = latencyMs === undefined ? null : placeOf(latencyMs) + 1;
    // Nothing but the provider has spaces in it.
    const key = `${tenant} ${request.channel} ${rank} ${settlement.to} ${outcome} ${place} ${provider}`;
    const number = this.#numbers.get(key);
    if (number !== undefined) return number;
    this.#numbers.set(key, this.#numbers.size + 1);
    return this.#kinds.push([
      tenant,
      request.channel,
      rank,
      provider,
      "attempt",
      "processing",
      settlement.to,
      outcome,
      place,
    ]);
  }

  /** In the order of their numbers. None, and all are looked up, where it cannot be said of each. */
  toJson(): string {
    return JSON.stringify(this.#isWhole ? this.#kinds : []);
  }
}
