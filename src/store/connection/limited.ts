// Statements under a time limit that the server keeps: it ends what takes longer, and with it every lock that it held or
// waited for.

import type pg from "pg";
import { inTransaction, type Queryable } from "./database.ts";

/** Each statement becomes a transaction of its own, since a limit for a session would stay behind on a connection that is shared. */
export function limitedTo(pool: pg.Pool, limitMs: number): Queryable {
  const query = (...given: unknown[]): Promise<unknown> =>
    inTransaction(pool, async (tx) => {
      await tx.query(`set local statement_timeout = ${Math.ceil(limitMs)}`);
      // Whatever the driver takes for a statement, it gets.
      return (tx.query as unknown as (...given: unknown[]) => Promise<unknown>)(...given);
    });
  return { query } as Queryable;
}
