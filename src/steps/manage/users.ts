// People, as their application asks for them to be forgotten, or for what is known of them. planned/forget-users.ts forgets them.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { invalid, type Problem } from "#domain/problems.ts";
import { type KnownPage, readKnown } from "#record/person.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { type Deletion, putDeletion } from "#store/deletions.ts";

export type UserWorld = {
  pool: pg.Pool;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

/** Asking again while it is under way changes nothing. */
export async function deleteUser({ pool, plan }: UserWorld, actor: KeyActor, userId: string): Promise<Deletion> {
  const deletion = await inTransaction(pool, async (tx) => {
    const { isNew, ...kept } = await putDeletion(tx, actor.tenant, userId);
    if (isNew) await writeAudit(tx, actor, { action: "user.delete", object: { kind: "user", name: userId } });
    return kept;
  });
  plan(0);
  return deletion;
}

/** That somebody had it all shown is in the audit log once, with the first page. */
export async function exportUser(
  { pool }: Pick<UserWorld, "pool">,
  actor: KeyActor,
  userId: string,
  { cursor, limit }: { cursor: string | undefined; limit: number },
): Promise<KnownPage | Problem> {
  return inTransaction(pool, async (tx) => {
    const page = await readKnown(tx, actor.tenant, userId, cursor, limit);
    if (!page) return invalid([{ path: "/cursor", message: "must be a nextCursor of an earlier page" }]);
    if (cursor === undefined) {
      await writeAudit(tx, actor, { action: "user.export", object: { kind: "user", name: userId } });
    }
    return page;
  });
}
