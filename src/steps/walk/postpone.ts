// Writes into the record that a notification waits for one of our guards, the first time it does, and the first time that it does
// because nobody answers. That it waits is certain without it; but for how long nobody has answered is counted from there.
//
// State: those whose waiting is in the record.

import type { Attempt, Postponed } from "#domain/attempt.ts";
import { bisect } from "#domain/bisect.ts";
import type { PostponedNote, Queue } from "#queue/queue.ts";
import { heldSince } from "#record/held.ts";
import { isOutage, type Queryable } from "#store/connection/database.ts";
import type { Facts } from "#telemetry/facts.ts";
import { createGroupCommit, type GroupCommit } from "#timing/group-commit.ts";

/** When there are too many, the older half is looked up again. */
const MOST_NOTED = 20_000;

export class Postponements {
  readonly #facts: Facts;
  readonly #notes: GroupCommit<PostponedNote, undefined>;
  readonly #looks: GroupCommit<string, number | undefined>;
  #noted = new Set<string>();
  #notedBefore = new Set<string>();

  constructor(db: Queryable, queue: Pick<Queue, "notePostponed">, worker: number, facts: Facts) {
    this.#facts = facts;
    this.#notes = createGroupCommit({
      abreast: 1,
      maxWaitingRows: Number.POSITIVE_INFINITY,
      maxWaitingBytes: Number.POSITIVE_INFINITY,
      commit: (rows) =>
        bisect<PostponedNote, undefined>(rows, {
          act: async (some) => {
            await queue.notePostponed(worker, some);
            return some.map(() => undefined);
          },
          isOutage,
          refuse: (error, { attempt }) => void facts.postponementRefused(attempt, error),
        }),
    });
    // Many come back together from one outage.
    this.#looks = createGroupCommit({
      abreast: 1,
      maxWaitingRows: Number.POSITIVE_INFINITY,
      maxWaitingBytes: Number.POSITIVE_INFINITY,
      commit: (ids) => heldSince(db, ids),
    });
  }

  /** Undefined where that is known. Never rejects. */
  note(attempt: Attempt, postponed: Postponed): Promise<void> | undefined {
    const key = postponed.silentMs === undefined ? attempt.id : silenceOf(attempt);
    if (this.#noted.has(key) || this.#notedBefore.has(key)) return undefined;
    this.#noted.add(key);
    if (this.#noted.size > MOST_NOTED) {
      this.#notedBefore = this.#noted;
      this.#noted = new Set();
    }
    return this.#notes.submitOne({ attempt, postponed }, 0)?.catch((error: unknown) => {
      this.#forget(key);
      this.#facts.postponementUnwritten(error);
    });
  }

  /** Since when nobody has answered, by the database's clock. Undefined where that cannot be told. Never rejects. */
  async heldSince(attempt: Attempt): Promise<number | undefined> {
    try {
      const sinceMs = await this.#looks.submitOne(attempt.id, 0);
      // It was lost with its lease: the next time it is written again.
      if (sinceMs === undefined) this.#forget(silenceOf(attempt));
      return sinceMs;
    } catch (error) {
      this.#facts.heldSinceUnread(attempt, error);
      return undefined;
    }
  }

  #forget(key: string): void {
    this.#noted.delete(key);
    this.#notedBefore.delete(key);
  }
}

const silenceOf = ({ id }: Pick<Attempt, "id">): string => `${id} unanswered`;
