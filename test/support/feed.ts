// A database with a feed, written by hand and read to its end.

import type { TestContext } from "node:test";
import pg from "pg";
import { type Fact, factId, type Position, startOf } from "#domain/fact.ts";
import { createIds } from "#domain/ids.ts";
import { readEpoch, readFeed } from "#record/feed.ts";
import type { Queryable } from "#store/connection/database.ts";
import { migratedDatabase } from "./postgres.ts";
import { until } from "./until.ts";

export type FeedDatabase = { url: string; db: pg.Pool; connect(): Promise<pg.Client> };

export async function feedDatabase(t: Pick<TestContext, "after">): Promise<FeedDatabase> {
  const database = await migratedDatabase();
  const db = new pg.Pool({ connectionString: database.url, max: 4 });
  db.on("error", () => {});
  const clients: pg.Client[] = [];
  t.after(async () => {
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
    await db.end();
    await database.drop();
  });
  return {
    url: database.url,
    db,
    async connect() {
      const client = new pg.Client(database.url);
      client.on("error", () => {});
      await client.connect();
      clients.push(client);
      return client;
    },
  };
}

export const makeId = createIds();

export async function accept(db: Queryable, ids: readonly string[], tenant = 1): Promise<void> {
  const rows = ids.map((i) => ({ i, t: tenant, c: "email", p: 2, r: {} }));
  await db.query("select from carillon.accept($1, false)", [JSON.stringify(rows)]);
}

/** Attempts that were made, one statement for all. */
export async function attempt(db: Queryable, ids: readonly string[], to = "pending", tenant = 1): Promise<void> {
  await db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, outcome)
     select id, $3, 'attempt', 'processing', $2, 1, 'unavailable' from unnest($1::uuid[]) as id`,
    [ids, to, tenant],
  );
}

/**
 * Page after page, up to what can be told now, and on until there are so many: others on the same server have transactions open, which
 * hold up everybody.
 */
export async function follow(
  db: Queryable,
  { least, ...asked }: { after?: Position; limit: number; tenant?: number; least: number },
): Promise<{ facts: Fact[]; next: Position }> {
  const facts: Fact[] = [];
  let { after = startOf(await readEpoch(db)) } = asked;
  return until(async () => {
    for (let isAtEnd = false; !isAtEnd; ) {
      const page = await readFeed(db, { ...asked, after });
      if (page.kind === "reset") throw new Error(`reset: ${page.reason}`);
      facts.push(...page.facts);
      after = page.next;
      isAtEnd = page.isAtEnd;
    }
    return facts.length >= least ? { facts, next: after } : undefined;
  });
}

export const namesOf = (facts: readonly Fact[]): string[] => facts.map((fact) => `${fact.type} ${factId(fact)}`);
