// That handoffs were offered, noted in the database a moment later and many at once: most are over by then, and nothing need be written of them. What is
// not noted because of a crash is offered again, which is harmless.

import { noteOffered } from "#queue/postgres/handoffs.ts";
import type { Queryable } from "#store/connection/database.ts";

/** Less than the time for which the keeper leaves them to whoever has just committed. */
const NOTE_MS = 1_000;

export class Offered {
  readonly #db: Queryable;
  readonly #onTrouble: (error: unknown) => void;
  readonly #numbers = new Set<number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(db: Queryable, onTrouble: (error: unknown) => void) {
    this.#db = db;
    this.#onTrouble = onTrouble;
  }

  add(number: number): void {
    this.#numbers.add(number);
    this.#timer ??= setTimeout(() => void this.#note(), NOTE_MS);
  }

  /** They are over. */
  forget(numbers: readonly number[]): void {
    for (const number of numbers) this.#numbers.delete(number);
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#note();
  }

  async #note(): Promise<void> {
    this.#timer = undefined;
    const numbers = [...this.#numbers];
    this.#numbers.clear();
    if (numbers.length > 0) await noteOffered(this.#db, numbers).catch(this.#onTrouble);
  }
}
