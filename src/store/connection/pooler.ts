// Recognises a pooler that shares sessions between its clients, before it breaks something: there nothing that a connection was told holds,
// and hints are lost.

import pg from "pg";
import { MigrationError } from "./migrations.ts";
import { leadingUrl } from "./servers.ts";

const ANSWER_MS = 3_000;

/** Throws a sentence for people. Two clients of a server, or of a pooler of sessions, never share a process of PostgreSQL. */
export async function refuseSharedSessions(url: string): Promise<void> {
  const connectionString = await leadingUrl(url);
  const [one, other] = [1, 2].map(() => {
    const client = new pg.Client({
      connectionString,
      application_name: "carillon check",
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
    });
    client.on("error", () => undefined);
    return client;
  }) as [pg.Client, pg.Client];
  try {
    await one.connect();
    await other.connect();
    const first = await processOf(one);
    await other.query("begin");
    // A pooler that takes turns through its sessions gives the first another one now.
    if ((await processOf(other)) === first || (await processOf(one)) !== first) throw shared();
  } catch (error) {
    if (error instanceof pg.DatabaseError && /transaction blocks not allowed/i.test(error.message)) throw shared();
    throw error;
  } finally {
    for (const client of [one, other]) client.end().catch(() => undefined);
  }
}

const shared = () =>
  new MigrationError(
    "the database URL leads through a pooler that shares sessions between its clients (PgBouncer's pool_mode transaction or " +
      "statement): let it pool sessions, or set CARILLON_DATABASE_DIRECT_URL to PostgreSQL itself",
  );

async function processOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid ?? 0;
}
