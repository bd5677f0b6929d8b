// Plans are for very many dead letters: what is looked at to judge them grows with them, and not with their square. Judged by what PostgreSQL looks
// at, and not by the clock.

import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { judgeFailed } from "#record/judged.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Dead, makeDead } from "../support/dead-letters.ts";
import { feedDatabase } from "../support/feed.ts";

/** Adds up the rows that its statements go over, and the blocks. */
function counting(db: pg.Pool): { db: Queryable; looked: () => { rows: number; blocks: number } } {
  let [rows, blocks] = [0, 0];
  const REMOVED = ["Rows Removed by Filter", "Rows Removed by Join Filter"] as const;
  type Node = { "Actual Rows": number; "Actual Loops": number; Plans?: Node[] } & {
    [removed in (typeof REMOVED)[number]]?: number;
  };
  const rowsOf = (node: Node): number =>
    REMOVED.reduce((sum, removed) => sum + (node[removed] ?? 0), node["Actual Rows"]) * node["Actual Loops"] +
    (node.Plans ?? []).reduce((sum, one) => sum + rowsOf(one), 0);
  const query = async (text: string, values: unknown[] = []) => {
    const explained = await db.query(`explain (analyze, buffers, timing off, format json) ${text}`, values);
    const { Plan: plan } = explained.rows[0]["QUERY PLAN"][0];
    rows += rowsOf(plan);
    blocks += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    return db.query(text, values);
  };
  return { db: { query } as unknown as Queryable, looked: () => ({ rows, blocks }) };
}

const ALL = { beforeId: null, most: 10_000 };
const REQUEUE = { tenant: 1, kind: "requeue" } as const;
const most = { rows: 60, blocks: 60 };

async function assertFew(db: pg.Pool, letters: number, what: string): Promise<void> {
  await db.query("vacuum analyze carillon.notifications, carillon.events, carillon.suppressions");
  const on = counting(db);
  const { judged } = await judgeFailed(on.db, REQUEUE, {}, ALL);
  assert.equal(judged.length, letters);
  const { rows, blocks } = on.looked();
  const found = `${what}: ${rows} rows and ${blocks} blocks for ${letters} letters`;
  assert.ok(rows <= most.rows * letters && blocks <= most.blocks * letters, found);
}

test("many letters of one user are looked over once each", async (t) => {
  const { db } = await feedDatabase(t);
  const dead: Dead = { userId: "ada", templateId: "welcome" };
  await makeDead(db, 2_000, dead);
  await assertFew(db, 2_000, "one user");
});

test("many addresses and many suppressions are not as many pairs", async (t) => {
  const { db } = await feedDatabase(t);
  for (let n = 0; n < 20; n += 1) await makeDead(db, 50, { channel: "email", email: `u${n}@example.com` });
  await db.query(
    "insert into carillon.suppressions (tenant, address, why) select 1, 'u' || n || '@example.com', 'bounce' from generate_series(10, 3000) as n",
  );
  await assertFew(db, 1_000, "suppressions");
  const { judged } = await judgeFailed(db, REQUEUE, {}, ALL);
  assert.equal(judged.filter(({ reason }) => reason === "suppressed").length, 500);
});

test("a user was reached by what came later, was sent and has the template of the letter", async (t) => {
  const { db } = await feedDatabase(t);
  const sent = async (dead: Dead) => {
    const [id] = await makeDead(db, 1, dead);
    await db.query(
      `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt)
       select $1, 1, 'attempt', 'processing', 'sent', 2`,
      [id],
    );
  };
  const one = async (dead: Dead) => (await makeDead(db, 1, dead))[0];
  await sent({ userId: "early", templateId: "welcome" });
  const early = await one({ userId: "early", templateId: "welcome" });
  const other = await one({ userId: "ada", templateId: "goodbye" });
  const [first, second] = await makeDead(db, 2, { userId: "ada", templateId: "welcome" });
  const lin = await one({ userId: "lin", templateId: "welcome" });
  await sent({ userId: "ada", templateId: "welcome" });
  const last = await one({ userId: "ada", templateId: "welcome" });
  await sent({ userId: "lin" });
  const { judged } = await judgeFailed(db, REQUEUE, {}, ALL);
  const reasons = Object.fromEntries(judged.map(({ id, reason }) => [id, reason]));
  const reached = (ids: (string | undefined)[]) => ids.map((id) => reasons[id ?? ""]);
  assert.deepEqual(reached([first, second]), ["reached", "reached"]);
  assert.deepEqual(reached([early, other, lin, last]), [null, null, null, null]);
  const purging = await judgeFailed(db, { tenant: 1, kind: "purge" }, {}, ALL);
  assert.ok(purging.judged.every(({ reason }) => reason === null));
});
