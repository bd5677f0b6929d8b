// Locks as rows. Who holds one, and for how long, is judged by the database's clock alone.

import type { Queryable } from "#store/connection/database.ts";

export type LockRow = { token: number } | { holder: string; leftMs: number };

/** The token when the lock was free or had run out, else who has it. Nothing is written for a lock that is held. */
export async function takeLock(db: Queryable, key: string, holder: string, ms: number): Promise<LockRow | undefined> {
  const { rows } = await db.query<{ token: number | null; holder: string | null; left_ms: number | null }>({
    name: "carillon-lock-take",
    // The update draws its token anew, under the row's lock: the one drawn for the insert may be older than the last
    // holder's.
    text: `with taken as (
        insert into carillon.locks as l (key, holder, token, until)
        values ($1, $2, nextval('carillon.lock_tokens'), clock_timestamp() + $3 * interval '1 ms')
        on conflict (key) do update set holder = $2, token = nextval('carillon.lock_tokens'),
          until = clock_timestamp() + $3 * interval '1 ms'
        where l.until <= clock_timestamp()
        returning token
      )
      select token::float8 as token, null as holder, null::float8 as left_ms from taken
      union all
      select null, holder, extract(epoch from until - clock_timestamp())::float8 * 1000
      from carillon.locks where key = $1 and not exists (select from taken)`,
    values: [key, holder, ms],
  });
  const [row] = rows;
  if (row?.token != null) return { token: row.token };
  // Without a row somebody took it while we looked, after what we could see.
  return row?.holder != null ? { holder: row.holder, leftMs: Math.max(0, row.left_ms ?? 0) } : undefined;
}

/** False when it was lost. */
export async function renewLock(db: Queryable, key: string, token: number, ms: number): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "carillon-lock-renew",
    text: `update carillon.locks set until = clock_timestamp() + $3 * interval '1 ms'
      where key = $1 and token = $2 and until > clock_timestamp()`,
    values: [key, token, ms],
  });
  return rowCount === 1;
}

/** False when it was lost. */
export async function freeLock(db: Queryable, key: string, token: number): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "carillon-lock-free",
    text: `update carillon.locks set until = clock_timestamp()
      where key = $1 and token = $2 and until > clock_timestamp()`,
    values: [key, token],
  });
  return rowCount === 1;
}

export async function findLock(db: Queryable, key: string): Promise<{ holder: string; leftMs: number } | undefined> {
  const { rows } = await db.query<{ holder: string; left_ms: number }>(
    `select holder, extract(epoch from until - clock_timestamp())::float8 * 1000 as left_ms
     from carillon.locks where key = $1 and until > clock_timestamp()`,
    [key],
  );
  return rows[0] && { holder: rows[0].holder, leftMs: rows[0].left_ms };
}

/** Removes the rows of locks that nobody has held for `ms`. */
export async function forgetLocks(db: Queryable, ms: number): Promise<void> {
  await db.query("delete from carillon.locks where until < clock_timestamp() - $1 * interval '1 ms'", [ms]);
}
