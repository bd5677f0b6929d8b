// Marks items of an inbox as their reader has them, and moves their notifications to delivered.
//
// A reader may be faster than the worker's own commit: its notification is not sent yet. Then it is tried again
// soon; should this process end meanwhile, the keeper finds it.

import type { Inbox } from "#domain/inbox.ts";
import type { Queryable } from "#store/connection/database.ts";
import { deliverAcked, type Mark, MOST_MARKED, markItems } from "#store/inbox.ts";

export type Acknowledge = (inbox: Inbox, mark: Mark) => Promise<number>;

const AGAIN_MS = [50, 250, 1_000];
/** Thousands of items that one request marks. */
const MOST_ROUNDS = 20;

export function createAcknowledge(db: Queryable): Acknowledge {
  async function deliver(ids: readonly string[], [waitMs, ...later]: readonly number[]): Promise<void> {
    const { waiting } = await deliverAcked(db, ids);
    if (waiting === 0 || waitMs === undefined) return;
    setTimeout(() => {
      // The keeper will find it.
      deliver(ids, later).catch(() => undefined);
    }, waitMs).unref();
  }
  /** Answers with how many items were marked that were not before. */
  return async (inbox, mark) => {
    let count = 0;
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const marked = await markItems(db, inbox, mark);
      count += marked.length;
      if (marked.length > 0) await deliver(marked, AGAIN_MS);
      if (marked.length < MOST_MARKED || "ids" in mark) break;
    }
    return count;
  };
}
