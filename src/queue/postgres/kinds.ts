// Which kinds of facts a batch of settlements writes, as they are counted: so that whoever counts need not look each of them up.

import type { Ended } from "#domain/attempt.ts";
import { placeOf } from "#domain/histogram.ts";

/** What all of a kind have in common but how long it took; and of each place of the histogram its number, from 1. */
type Kind = {
  tenant: number;
  channel: string;
  rank: number;
  to: string;
  outcome: string;
  provider: string;
  numbers: (number | undefined)[];
};

const NO_LATENCY = 0;
/** As the database has it, for what is then written. */
const LEAST_EACH = 4;
const PLAIN = /^[ -~]*$/;

export class Kinds {
  readonly #kinds = new Map<string, Kind>();
  readonly #lines: unknown[] = [];
  /** Most are like the one before, and that is soon seen. */
  #last: Kind | undefined;
  #isWhole = true;
  #told = 0;

  /** Undefined where nothing is written, or where it is told to nobody. */
  of({ attempt, settlement, line }: Ended): number | undefined {
    if (!line || attempt.tenant <= 0) return undefined;
    this.#told++;
    const { tenant, request, rank } = attempt;
    const { provider = "", outcome, latencyMs } = line;
    let kind = this.#last;
    if (
      kind?.tenant !== tenant ||
      kind.channel !== request.channel ||
      kind.rank !== rank ||
      kind.to !== settlement.to ||
      kind.outcome !== outcome ||
      kind.provider !== provider
    ) {
      kind = this.#find({ tenant, channel: request.channel, rank, to: settlement.to, outcome, provider, numbers: [] });
      this.#last = kind;
    }
    const place = latencyMs === undefined ? NO_LATENCY : placeOf(latencyMs) + 1;
    kind.numbers[place] ??= this.#number(kind, place);
    return kind.numbers[place];
  }

  /** In the order of their numbers. None, and all are looked up, where it cannot be said of each or where there are too many to be worth it. */
  toJson(): string {
    return JSON.stringify(this.#isWhole && this.#lines.length * LEAST_EACH <= this.#told ? this.#lines : []);
  }

  #find(kind: Kind): Kind {
    const { tenant, channel, rank, to, outcome, provider } = kind;
    // Null came through no door, and half an emoji is no jsonb: with either in a row of the feed nothing of anybody would be counted any more.
    if (channel === undefined || !PLAIN.test(provider)) this.#isWhole = false;
    // Nothing but the provider has spaces in it.
    const key = `${tenant} ${channel} ${rank} ${to} ${outcome} ${provider}`;
    const known = this.#kinds.get(key);
    if (known) return known;
    this.#kinds.set(key, kind);
    return kind;
  }

  #number({ tenant, channel, rank, to, outcome, provider }: Kind, place: number): number {
    const words = [provider, "attempt", "processing", to, outcome];
    return this.#lines.push([tenant, channel, rank, ...words, place === NO_LATENCY ? null : place]);
  }
}
