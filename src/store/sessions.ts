// Sessions of people at the dashboard: stored as a hash, found by their public id.

import type { Queryable } from "#store/connection/database.ts";

/** Of a stored key, or of the key of the environment that had this hash. */
export type SessionOwner = { keyId: string; fixedHash: null } | { keyId: null; fixedHash: Buffer };
export type StoredSession = { id: string; hash: Buffer; expiresAt: Date } & SessionOwner;

export async function findSession(db: Queryable, id: string): Promise<StoredSession | undefined> {
  const { rows } = await db.query<StoredSession>({
    name: "carillon-session",
    text: `select id, hash, key as "keyId", fixed_hash as "fixedHash", expires_at as "expiresAt"
           from carillon.sessions where id = $1`,
    values: [id],
  });
  return rows[0];
}

export type NewSession = { id: string; hash: Buffer; seconds: number } & SessionOwner;

/** Of a key's sessions no more than `most` are kept, the newest; those of the environment's key count together. */
export async function insertSession(db: Queryable, session: NewSession, most: number): Promise<Date> {
  const { id, hash, seconds, keyId, fixedHash } = session;
  const { rows } = await db.query<{ expiresAt: Date }>(
    `with others as (
       select id from carillon.sessions where key is not distinct from $3 order by begun_at desc, id offset $6
     ), ended as (delete from carillon.sessions where id in (select id from others))
     insert into carillon.sessions (id, hash, key, fixed_hash, expires_at)
     values ($1, $2, $3, $4, statement_timestamp() + $5 * interval '1 second') returning expires_at as "expiresAt"`,
    [id, hash, keyId, fixedHash, seconds, most - 1],
  );
  return rows[0]?.expiresAt as Date;
}

export async function deleteSession(db: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await db.query("delete from carillon.sessions where id = $1", [id]);
  return rowCount === 1;
}

/** Those that are over; how many. */
export async function forgetSessions(db: Queryable, batch: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from carillon.sessions where id in (
       select id from carillon.sessions where expires_at <= statement_timestamp() limit $1 for update skip locked)`,
    [batch],
  );
  return rowCount ?? 0;
}
