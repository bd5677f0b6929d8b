// Marks items of an inbox as their reader has them, and moves their notifications to delivered.
//
// A reader may be faster than the worker's own commit: its notification is not sent yet. Then it is tried again
// soon; should this process end meanwhile, the keeper finds it.

import type { Caller } from "#domain/actor.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { InboxHint } from "#store/connection/inbox-hint.ts";
import { deliverAcked, type Mark, MOST_MARKED, markItems } from "#store/inbox.ts";

/** Answers with how many items of the user's inbox were marked that were not before. */
export type Acknowledge = (actor: Caller, userId: string, mark: Mark) => Promise<number>;

const AGAIN_MS = [50, 250, 1_000];
/** Thousands of items that one request marks. */
const MOST_ROUNDS = 20;
/** What its other readers see: that it has arrived is not shown. */
const SHOWN: ReadonlySet<Mark["verb"]> = new Set(["read", "archive", "read-all"]);

export function createAcknowledge(db: Queryable, hintInboxes: InboxHint): Acknowledge {
  async function deliver(ids: readonly string[], [waitMs, ...later]: readonly number[]): Promise<void> {
    const { waiting } = await deliverAcked(db, ids);
    if (waiting === 0 || waitMs === undefined) return;
    setTimeout(() => {
      // The keeper will find it.
      deliver(ids, later).catch(() => undefined);
    }, waitMs).unref();
  }
  return async ({ tenant }, userId, mark) => {
    const inbox = { tenant, userId };
    let count = 0;
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const marked = await markItems(db, inbox, mark);
      count += marked.length;
      if (marked.length > 0) await deliver(marked, AGAIN_MS);
      if (marked.length < MOST_MARKED || "ids" in mark) break;
    }
    if (count > 0 && SHOWN.has(mark.verb)) hintInboxes([inbox]);
    return count;
  };
}
