// Signing in and out: whoever shows a key is given a session that stands for it, with the key's scopes and no others.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { hashOf } from "#domain/api-key.ts";
import { Problem } from "#domain/problems.ts";
import { MOST_SESSIONS, newSession } from "#domain/session.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { deleteSession, insertSession, type SessionOwner } from "#store/sessions.ts";

export type SessionWorld = {
  pool: pg.Pool;
  /** CARILLON_API_KEY, which is not stored. */
  fixedKey: string | undefined;
  /** Whoever remembers sessions need not wait to hear of it. */
  forget: (sessionId: string) => void;
};

/** `token` is its only copy. */
export type BegunSession = { id: string; token: string; expiresAt: Date };

export const FIXED_KEY_ID = "environment";

export async function beginSession(
  { pool, fixedKey }: Pick<SessionWorld, "pool" | "fixedKey">,
  actor: KeyActor,
  seconds: number,
): Promise<BegunSession | Problem> {
  // Else it could be prolonged for ever, by whoever has no key.
  if (actor.session !== undefined) return new Problem("FORBIDDEN", "a session is begun with an API key");
  const { id, token, hash } = newSession();
  const owner: SessionOwner =
    actor.keyId === FIXED_KEY_ID && fixedKey !== undefined
      ? { keyId: null, fixedHash: hashOf(fixedKey) }
      : { keyId: actor.keyId, fixedHash: null };
  const expiresAt = await inTransaction(pool, async (tx) => {
    const until = await insertSession(tx, { id, hash, seconds, ...owner }, MOST_SESSIONS);
    const after = { expiresAt: until };
    await writeAudit(tx, actor, { action: "session.begin", object: { kind: "session", name: id }, after });
    return until;
  });
  return { id, token, expiresAt };
}

/** Who came with a key has none, and that is as well. */
export async function endSession(
  { pool, forget }: Pick<SessionWorld, "pool" | "forget">,
  actor: KeyActor,
): Promise<void> {
  const { session } = actor;
  if (session === undefined) return;
  await inTransaction(pool, async (tx) => {
    if (!(await deleteSession(tx, session))) return;
    await writeAudit(tx, actor, { action: "session.end", object: { kind: "session", name: session } });
  });
  forget(session);
}
