// One leader at a time, by a lease in the database.
//
// The term is a fencing number: it grows with every change of leader. What a leader does is safe when two
// do it; the lease saves work, not correctness.

import type { Queryable } from "#store/connection/database.ts";

/** Takes or keeps the lead for `ms`; undefined while somebody else has it. */
export async function lead(db: Queryable, name: string, holder: string, ms: number): Promise<number | undefined> {
  const { rows } = await db.query<{ term: number }>({
    name: "carillon-lead",
    text: `insert into carillon.leaders as l (name, holder, term, until)
      values ($1, $2, 1, clock_timestamp() + $3 * interval '1 ms')
      on conflict (name) do update set holder = $2, until = clock_timestamp() + $3 * interval '1 ms',
        term = l.term + (l.holder <> $2)::int
      where l.holder = $2 or l.until <= clock_timestamp()
      returning term::float8 as term`,
    values: [name, holder, ms],
  });
  return rows[0]?.term;
}

export async function resign(db: Queryable, name: string, holder: string): Promise<void> {
  await db.query("update carillon.leaders set until = clock_timestamp() where name = $1 and holder = $2", [
    name,
    holder,
  ]);
}

export type Lead = { name: string; holder: string; isHeld: boolean; until: Date };

/** Who has each lead, or had it last. */
export async function listLeads(db: Queryable): Promise<Lead[]> {
  const { rows } = await db.query<Lead>(
    // A probe of writing leaves a row in nobody's name.
    `select name, holder, until, until > clock_timestamp() as "isHeld" from carillon.leaders where holder <> '' order by name`,
  );
  return rows;
}

/** Until the transaction ends, and its connection with it; false while somebody else has it. */
export async function lockAlone(tx: Queryable, name: string): Promise<boolean> {
  const { rows } = await tx.query<{ is_ours: boolean }>({
    name: "carillon-lock-alone",
    text: "select pg_try_advisory_xact_lock(hashtext('carillon ' || $1)) as is_ours",
    values: [name],
  });
  return rows[0]?.is_ours ?? false;
}

/** Beside others who do the same, and not beside whoever waits to be alone. */
export async function lockTogether(tx: Queryable, name: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock_shared(hashtext('carillon ' || $1))", [name]);
}

/** Waits for whoever has it; then it is ours until the transaction ends. */
export async function waitAlone(tx: Queryable, name: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtext('carillon ' || $1))", [name]);
}

/** Whether it is still theirs, and until the transaction ends nobody else's. */
export async function leads(tx: Queryable, name: string, holder: string, term: number): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "carillon-leads",
    text: `select from carillon.leaders where name = $1 and holder = $2 and term = $3 and until > clock_timestamp() for update`,
    values: [name, holder, term],
  });
  return rowCount === 1;
}
