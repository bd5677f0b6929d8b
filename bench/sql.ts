// Statements of the benchmark itself, each on a connection of its own.

import pg from "pg";

export async function runSql<Row extends pg.QueryResultRow>(url: string, ...statements: string[]): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: Row[] = [];
    for (const statement of statements) ({ rows } = await client.query<Row>(statement));
    return rows;
  } finally {
    await client.end();
  }
}

export async function count(url: string, from: string): Promise<number> {
  // To compile it would take longer than to count.
  const [row] = await runSql<{ n: string }>(url, "set jit = off", `select count(*) as n from ${from}`);
  return Number(row?.n);
}

const INSUFFICIENT_PRIVILEGE = "42501";

/** Statistics fresh, dirty pages written: nobody pays for what came before. */
export async function settleStore(url: string): Promise<void> {
  await runSql(url, "vacuum analyze");
  await runSql(url, "checkpoint").catch((error: unknown) => {
    // Somebody's own server may let only its superuser do this; the run is then a little noisier.
    if (!(error instanceof pg.DatabaseError && error.code === INSUFFICIENT_PRIVILEGE)) throw error;
  });
}
