// The connections to PostgreSQL.
//
// Three pools, so that no kind of work can starve another: acceptance and the worker have a few connections
// each that carry large statements, everything else shares the rest. A query that fails gives its
// connection up, so that a broken one is never used twice.

import pg from "pg";

export type Queryable = Pick<pg.Pool, "query">;

export type Database = {
  accept: pg.Pool;
  work: pg.Pool;
  read: pg.Pool;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  url: string;
  acceptConnections: number;
  readConnections: number;
  onError: (error: Error) => void;
};

/** Longest wait for an answer before the database counts as away. */
const ANSWER_MS = 8_000;
const CONNECT_MS = 3_000;
/** One claims, two settle, one extends, one sweeps, one looks for what will be due. */
const WORK_CONNECTIONS = 6;
/**
 * The queue's tables go from empty to full and back faster than statistics follow, and a plan made for an empty
 * table reads a full one from end to end for every row. With these off, only the index paths that the statements were
 * written for remain.
 */
const PINNED = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off";
/**
 * We wake whoever sleeps ourselves, after our commits; triggers do it for everybody else. A statement of a few milliseconds is
 * not worth the half second that compiling it may take.
 */
const SETTINGS = "-c carillon.hints=own -c jit=off";
/** An open transaction of somebody else with the same idempotency key must not hold a batch for long. */
const LOCK_MS = 500;

export function openDatabase({ url, acceptConnections, readConnections, onError }: DatabaseOptions): Database {
  let isClosed = false;
  const open = (name: string, max: number, more: pg.PoolConfig = {}) => {
    const pool = new pg.Pool({
      connectionString: url,
      application_name: `carillon ${name}`,
      max,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: ANSWER_MS,
      statement_timeout: ANSWER_MS,
      keepAlive: true,
      ...more,
      options: `${SETTINGS} ${more.options ?? ""}`,
    });
    // An idle connection that breaks is replaced at the next query; without a listener it would end the process.
    pool.on("error", (error) => {
      if (!isClosed) onError(error);
    });
    return pool;
  };
  const accept = open("accept", acceptConnections, { lock_timeout: LOCK_MS, options: PINNED });
  const work = open("work", WORK_CONNECTIONS, { options: PINNED });
  const read = open("read", readConnections);
  return {
    accept,
    work,
    read,
    close: async () => {
      isClosed = true;
      await Promise.all([accept.end(), work.end(), read.end()]);
    },
  };
}

/** All or nothing. The connection is given up if anything fails, so that no transaction stays open on it. */
export async function inTransaction<Value>(pool: pg.Pool, act: (tx: Queryable) => Promise<Value>): Promise<Value> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const value = await act(client);
    await client.query("commit");
    client.release();
    return value;
  } catch (error) {
    client.release(error instanceof Error ? error : true);
    throw error;
  }
}

/** Something within a transaction that may be refused without undoing the rest of it. An outage still throws. */
export async function trying<Value>(tx: Queryable, act: () => Promise<Value>): Promise<Value | Error> {
  await tx.query("savepoint trying");
  try {
    const value = await act();
    await tx.query("release savepoint trying");
    return value;
  } catch (error) {
    if (isOutage(error) || !(error instanceof Error)) throw error;
    await tx.query("rollback to savepoint trying");
    return error;
  }
}

/** True when the database is away, full or refusing work, as opposed to refusing this statement. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (error instanceof pg.DatabaseError) {
    // Connection, resources, operator intervention, input/output, and a standby that cannot write.
    return /^(08|53|57|58)/.test(code) || code === "25006";
  }
  return (
    /^E[A-Z]+$/.test(code) ||
    /timeout|terminated|not queryable|Connection ended|Cannot use a pool after/i.test(error.message)
  );
}
