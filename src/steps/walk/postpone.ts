// Writes into the record that a notification waits for one of our guards, the first time it does.
//
// It is only a line for people: that it waits is certain without it. State: those whose waiting is in the record.

import type { Attempt, Postponed } from "#domain/attempt.ts";
import { bisect } from "#domain/bisect.ts";
import type { PostponedNote, Queue } from "#queue/queue.ts";
import { isOutage } from "#store/connection/database.ts";
import type { Facts } from "#telemetry/facts.ts";
import { createGroupCommit, type GroupCommit } from "#timing/group-commit.ts";

/** When there are too many, the older half is looked up again. */
const MOST_NOTED = 20_000;

export class Postponements {
  readonly #facts: Facts;
  readonly #notes: GroupCommit<PostponedNote, undefined>;
  #noted = new Set<string>();
  #notedBefore = new Set<string>();

  constructor(queue: Pick<Queue, "notePostponed">, worker: number, facts: Facts) {
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
          refuse: (error, { attempt: { id } }) => void facts.postponementRefused(id, error),
        }),
    });
  }

  /** Undefined where that is known. Never rejects. */
  note(attempt: Attempt, postponed: Postponed): Promise<void> | undefined {
    const { id } = attempt;
    if (this.#noted.has(id) || this.#notedBefore.has(id)) return undefined;
    this.#noted.add(id);
    if (this.#noted.size > MOST_NOTED) {
      this.#notedBefore = this.#noted;
      this.#noted = new Set();
    }
    return this.#notes
      .submitOne({ attempt, postponed }, 0)
      ?.catch((error: unknown) => this.#facts.postponementUnwritten(error));
  }
}
