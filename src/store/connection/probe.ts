// Whether the database answers, and takes writes: one of the smallest, committed like any other.

import type { Queryable } from "./database.ts";

/** The table of leaders holds a few rows that are written again and again as it is. */
export async function probeWrite(db: Queryable): Promise<void> {
  await db.query({
    name: "carillon-probe",
    text: `insert into carillon.leaders (name, holder, term, until) values ('probe', '', 1, clock_timestamp())
      on conflict (name) do update set until = excluded.until`,
  });
}

/** PostgreSQL's version, as people say it. */
export async function readMajorVersion(db: Queryable): Promise<number | undefined> {
  const { rows } = await db.query<{ major: number }>(
    "select current_setting('server_version_num')::int / 10000 as major",
  );
  return rows[0]?.major;
}
