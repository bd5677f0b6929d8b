// Writes into the record that a notification waits for one of our guards, the first time it does.
//
// It is only a line for people: that it waits is certain without it. State: those whose waiting is in the record.

import type { Attempt, Postponed } from "#domain/attempt.ts";
import { bisect } from "#domain/bisect.ts";
import type { PostponedNote, Queue } from "#queue/queue.ts";
import { isOutage } from "#store/connection/database.ts";
import type { Facts } from "#telemetry/facts.ts";
import { createGroupCommit } from "#timing/group-commit.ts";

export type Postponements = {
  /** Undefined where that is known. Never rejects. */
  note(attempt: Attempt, postponed: Postponed): Promise<void> | undefined;
};

/** When there are too many, the older half is looked up again. */
const MOST_NOTED = 20_000;

export function createPostponements(queue: Pick<Queue, "notePostponed">, worker: number, facts: Facts): Postponements {
  let noted = new Set<string>();
  let notedBefore = new Set<string>();
  const notes = createGroupCommit<PostponedNote, undefined>({
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
  return {
    note(attempt, postponed) {
      const { id } = attempt;
      if (noted.has(id) || notedBefore.has(id)) return undefined;
      noted.add(id);
      if (noted.size > MOST_NOTED) {
        notedBefore = noted;
        noted = new Set();
      }
      return notes.submitOne({ attempt, postponed }, 0)?.catch((error: unknown) => facts.postponementUnwritten(error));
    },
  };
}
