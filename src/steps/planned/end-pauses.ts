// Pauses that are over: forgotten where their end has come, and who waited for them brought back.

import type pg from "pg";
import type { Queue } from "#queue/queue.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { deletePastPauses } from "#store/pauses.ts";

export type PausedWorld = { pool: pg.Pool; queue: Pick<Queue, "bringBack"> };

const BATCH = 1_000;
const BATCHES = 10;

const SCHEDULER = { kind: "process", what: "scheduler" } as const;

export async function endPauses({ pool, queue }: PausedWorld): Promise<number> {
  const ended = await inTransaction(pool, async (tx) => {
    const past = await deletePastPauses(tx);
    for (const { kind, name, tenant, reason, until } of past) {
      const object = { kind, name: name.split("@", 1).join() };
      const whose = tenant === null ? {} : { tenant };
      await writeAudit(tx, SCHEDULER, { action: `${kind}.resume`, object, ...whose, before: { reason, until } });
    }
    return past.length;
  });
  if (ended > 0) await bringBackSome({ db: pool, queue });
  return ended;
}

/** The first of those that waited for a provider which is no longer paused, batch by batch; a chore brings back the rest. */
export async function bringBackSome({ db, queue }: { db: Queryable; queue: PausedWorld["queue"] }): Promise<void> {
  for (let batch = 0, back = BATCH; batch < BATCHES && back === BATCH; batch++) back = await queue.bringBack(db, BATCH);
}
