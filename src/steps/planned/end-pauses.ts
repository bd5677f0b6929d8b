// Pauses that are over: forgotten where their end has come, and who waited for them brought back.

import type { Queue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { deletePastPauses } from "#store/pauses.ts";

export type PausedWorld = { db: Queryable; queue: Pick<Queue, "bringBack"> };

const BATCH = 1_000;
const BATCHES = 10;

export async function endPauses(world: PausedWorld): Promise<number> {
  const ended = await deletePastPauses(world.db);
  if (ended > 0) await bringBackSome(world);
  return ended;
}

/** The first of those that waited for a provider which is no longer paused, batch by batch; a chore brings back the rest. */
export async function bringBackSome({ db, queue }: PausedWorld): Promise<void> {
  for (let batch = 0, back = BATCH; batch < BATCHES && back === BATCH; batch++) back = await queue.bringBack(db, BATCH);
}
