// A pool whose connection is cut at a chosen statement, before it is sent or after its answer: what a crash there
// would leave behind.

import type pg from "pg";
import { until } from "./until.ts";

export type Cut = { at: number; when: "before" | "after" };

export function flakyPool(pool: pg.Pool, cut: Cut): { pool: pg.Pool; statements: () => number } {
  let statements = 0;
  const connect = async () => {
    const client = await pool.connect();
    client.on("error", () => {});
    const die = () => {
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
      throw new Error("Connection terminated by the test");
    };
    const query = async (...args: unknown[]) => {
      const n = ++statements;
      if (n === cut.at && cut.when === "before") die();
      const answer = await (client.query as (...given: unknown[]) => Promise<unknown>)(...args);
      if (n === cut.at && cut.when === "after") die();
      return answer;
    };
    return { query, release: (error?: Error | boolean) => client.release(error) };
  };
  const query = async (...args: unknown[]) => {
    const client = await connect();
    try {
      const answer = await client.query(...args);
      client.release();
      return answer;
    } catch (error) {
      client.release(true);
      throw error;
    }
  };
  return { pool: { connect, query } as unknown as pg.Pool, statements: () => statements };
}

/** Resolves when PostgreSQL has noticed that the connection is gone, and has undone its transaction. */
export async function untilUndone(db: pg.Pool): Promise<void> {
  await until(async () => {
    const { rows } = await db.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
         and xact_start is not null and backend_type = 'client backend'`,
    );
    return rows[0]?.n === 0 ? true : undefined;
  });
}
