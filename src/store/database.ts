// The connections to PostgreSQL.
//
// Two pools, so that neither kind of work can starve the other: acceptance has a few connections
// of its own that carry large statements, everything else shares the rest. A query that fails
// gives its connection up, so that a broken one is never used twice.

import pg from "pg";

export type Queryable = Pick<pg.Pool, "query">;

export type Database = {
  accept: pg.Pool;
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
const ANSWER_MS = 10_000;
const CONNECT_MS = 3_000;
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
    });
    // An idle connection that breaks is replaced at the next query; without a listener it would end the process.
    pool.on("error", (error) => {
      if (!isClosed) onError(error);
    });
    return pool;
  };
  const accept = open("accept", acceptConnections, { lock_timeout: LOCK_MS });
  const read = open("read", readConnections);
  return {
    accept,
    read,
    close: async () => {
      isClosed = true;
      await Promise.all([accept.end(), read.end()]);
    },
  };
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
