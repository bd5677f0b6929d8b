// What sending cost: the tallies, with what they have not counted yet, say what a count of the whole record says.

import assert from "node:assert/strict";
import { test } from "node:test";
import type pg from "pg";
import { createIds } from "#domain/ids.ts";
import { spansOf } from "#domain/spans.ts";
import { type CostKey, type CostLine, readCosts, readCostsOfField } from "#record/costs.ts";
import { foldTallies } from "#steps/planned/fold-tallies.ts";
import { feedDatabase, makeId } from "../support/feed.ts";
import { until } from "../support/until.ts";

const DAY_MS = 86_400_000;

const fold = (db: pg.Pool) =>
  until(async () => {
    const round = await foldTallies(db);
    const { rows } = await db.query("select from carillon.untallied limit 1");
    return round?.isAtEnd && rows.length === 0 ? true : undefined;
  });

type Sent = { provider?: string; cost?: number | null; outcome?: string; tenant?: number; at?: Date };

/** So many, each with an attempt. Every other one is of the team `a`. */
async function send(db: pg.Pool, count: number, sent: Sent = {}): Promise<void> {
  const { provider = "ses", cost = 0.0001, outcome = "accepted", tenant = 1, at = new Date() } = sent;
  const newId = at.getTime() < Date.now() - DAY_MS ? createIds(() => at.getTime()) : makeId;
  await db.query("select carillon.make_partitions($1, $1)", [at]);
  const rows = Array.from({ length: count }, (_, n) => ({
    ...{ i: newId(), t: tenant, c: n % 3 ? "email" : "sms", p: 2, r: { metadata: { team: n % 2 ? "a" : "b" } } },
  }));
  await db.query("select from carillon.accept($1, false)", [JSON.stringify(rows)]);
  const ids = rows.map(({ i }) => i);
  await db.query("update carillon.notifications set accepted_at = $2 where id = any ($1)", [ids, at]);
  await db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, outcome, provider, cost, at)
     select id, $2, 'attempt', 'processing', 'sent', 1, $3, $4, $5, $6 from unnest($1::uuid[]) as id`,
    [ids, tenant, outcome, provider, cost, at],
  );
}

const rounded = (lines: readonly CostLine[]) =>
  lines.map(({ key, sent, cost }) => `${key} ${sent} ${cost.toFixed(6)}`).sort();

async function whole(db: pg.Pool, key: string, since: Date, end: Date): Promise<string[]> {
  const { rows } = await db.query<CostLine>(
    `select coalesce(${key}, '') as key, count(*)::int as sent, coalesce(sum(e.cost::numeric), 0)::float8 as cost from carillon.events e
     join carillon.notifications n on n.tenant = e.tenant and n.id = e.notification_id
     where e.tenant = 1 and e.type = 'attempt' and e.outcome = 'accepted' and e.at >= $1 and e.at < $2 group by 1`,
    [since, end],
  );
  return rounded(rows);
}

async function assertEqual(db: pg.Pool, when: string): Promise<void> {
  const now = new Date();
  for (const days of [0.01, 1, 5, 30, 70, 400]) {
    for (const end of [now, new Date(now.getTime() - (days / 2) * DAY_MS)]) {
      const spans = spansOf({ since: new Date(now.getTime() - days * DAY_MS), until: end }, now);
      for (const [by, key] of [
        ["provider", "e.provider"],
        ["channel", "n.channel"],
      ] as [CostKey, string][]) {
        const found = rounded(await readCosts(db, 1, by, spans));
        assert.deepEqual(found, await whole(db, key, spans.since, spans.until), `${when}: ${days} days by ${by}`);
      }
    }
  }
}

/** Of several ages, providers, outcomes and tenants. */
async function sendSome(db: pg.Pool): Promise<void> {
  for (const days of [0, 0.3, 1.5, 4, 20, 65, 300]) {
    const at = new Date(Date.now() - days * DAY_MS - 1_234);
    await send(db, 5, { at });
    await send(db, 2, { at, provider: "twilio", cost: 0.0083 });
  }
  await send(db, 3, { cost: null });
  await send(db, 2, { outcome: "unavailable", cost: 1 });
  await db.query(
    "insert into carillon.tenants (id, name) overriding system value values (2, 'other') on conflict do nothing",
  );
  await send(db, 2, { tenant: 2, cost: 5 });
}

test("costs equal a full count: with nobody who counts, before something is counted, and after", async (t) => {
  const { db } = await feedDatabase(t);
  await sendSome(db);
  await assertEqual(db, "nobody counts");
  await foldTallies(db);
  await sendSome(db);
  await assertEqual(db, "some are not counted");
  await fold(db);
  await assertEqual(db, "all are counted");
  await sendSome(db);
  await assertEqual(db, "some more happened");
});

test("what retention takes has cost what it did", async (t) => {
  const { db } = await feedDatabase(t);
  await sendSome(db);
  await fold(db);
  const now = new Date();
  const spans = spansOf({ since: new Date(now.getTime() - 30 * DAY_MS), until: now }, now);
  const before = await readCosts(db, 1, "provider", spans);
  await db.query("truncate carillon.notifications, carillon.events");
  assert.deepEqual(await readCosts(db, 1, "provider", spans), before);
  assert.deepEqual(
    before.map(({ key }) => key),
    ["twilio", "ses"],
    "the dearest first",
  );
});

test("by a field of the metadata, pages look at so many each, and add up to a full count", async (t) => {
  const { db } = await feedDatabase(t);
  await sendSome(db);
  const range = { since: new Date(Date.now() - 10 * DAY_MS), until: new Date(Date.now() + 1_000) };
  const sums = new Map<string, CostLine>();
  let [beforeId, pages, looked]: [string | undefined, number, number] = [undefined, 0, 0];
  do {
    const page: Awaited<ReturnType<typeof readCostsOfField>> = await readCostsOfField(db, 1, "team", {
      ...range,
      beforeId,
      maxScanned: 7,
    });
    assert.ok(page.looked <= 7);
    for (const { key, sent, cost } of page.lines) {
      const sum = sums.get(key) ?? { key, sent: 0, cost: 0 };
      sums.set(key, { key, sent: sum.sent + sent, cost: sum.cost + cost });
    }
    beforeId = page.nextId;
    pages += 1;
    looked += page.looked;
    assert.equal(page.until === undefined, page.nextId === undefined);
  } while (beforeId !== undefined);
  assert.deepEqual(
    rounded([...sums.values()]),
    await whole(db, "n.request -> 'metadata' ->> 'team'", range.since, range.until),
  );
  assert.ok(pages > 4 && looked >= 30, `${looked} on ${pages} pages`);
});
