// Claims against a model of a few lines: whatever waits for whom, with whatever weights, channels, lanes and times, each takes what comes
// first of all, in that order.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { openDatabase, type Queryable } from "#store/connection/database.ts";
import { migrate } from "#store/connection/migrate.ts";
import { freshDatabase } from "../support/postgres.ts";

const LEASE_MS = 30_000;
const SEED = Number(process.env.CARILLON_TEST_SEED ?? 7);
const ROUNDS = 12;

type Row = { rank: number; tenant: number; seq: number; due: number | null; weight: number };
type Turn = { tenant: number; spent: number };

/** Mulberry32. */
function createRandom(seed: number) {
  let state = seed;
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
}

/** What a claim takes of these, and whose turn is next then, in the lane in which it ends. */
function expected(rows: readonly Row[], size: number, cursors: Map<number, Turn>): number[] {
  const taken: number[] = [];
  for (const rank of [0, 1, 2, 3]) {
    const { tenant: first, spent } = cursors.get(rank) ?? { tenant: 0, spent: 0 };
    const ofLane = rows.filter((row) => row.rank === rank);
    const tenants = [...new Set(ofLane.map(({ tenant }) => tenant))].sort(
      (a, b) => Number(a < first) - Number(b < first) || a - b,
    );
    const lines = tenants.map((tenant) =>
      ofLane
        .filter((row) => row.tenant === tenant)
        .sort(
          (a, b) => (a.due ?? Number.POSITIVE_INFINITY) - (b.due ?? Number.POSITIVE_INFINITY) || a.seq - b.seq || 0,
        ),
    );
    const had = new Map([[first, spent]]);
    while (taken.length < size && lines.some((line) => line.length > 0)) {
      for (const line of lines) {
        const [next] = line;
        if (!next) continue;
        let used = Math.min(had.get(next.tenant) ?? 0, next.weight - 1);
        while (used < next.weight && line.length > 0 && taken.length < size) {
          taken.push(line.shift()?.seq as number);
          used++;
          cursors.set(
            rank,
            used < next.weight ? { tenant: next.tenant, spent: used } : { tenant: next.tenant + 1, spent: 0 },
          );
        }
        had.delete(next.tenant);
      }
    }
    if (taken.length === size) break;
  }
  return taken;
}

const CHANNELS = ["email", "push", "webhook"];

/** Some of it waits for a time that has come. */
async function accept(db: Queryable, tenants: readonly number[], random: (below: number) => number): Promise<void> {
  const busy = tenants[random(tenants.length)] as number;
  const rows = Array.from({ length: 20 + random(200) }, () => ({
    t: random(3) === 0 ? busy : tenants[random(tenants.length)],
    c: CHANNELS[random(CHANNELS.length)],
    p: random(4) === 0 ? random(4) : 2,
    d: random(4) === 0 ? new Date(Date.now() + 3_600_000 + 1_000 * random(20)).toISOString() : undefined,
    r: { content: {} },
  }));
  await db.query(
    `select carillon.accept((select json_agg(r::jsonb || jsonb_build_object('i', carillon.new_id()) order by n)
      from json_array_elements($1) with ordinality as r(r, n)), false)`,
    [JSON.stringify(rows)],
  );
  await db.query("update carillon.later set due_at = due_at - interval '2 hours' where due_at > now()");
}

async function waiting(db: Queryable, notTenants: readonly number[]): Promise<Row[]> {
  const { rows } = await db.query<Row>(
    `select w.priority as rank, w.tenant, w.seq::float8 as seq, extract(epoch from w.due_at)::float8 as due, t.weight
     from (select priority, tenant, seq, null as due_at from carillon.ready
       union all select priority, tenant, seq, due_at from carillon.later) w
     join carillon.tenants t on t.id = w.tenant where w.tenant <> all ($1)`,
    [notTenants],
  );
  return rows;
}

test(`claims take what comes first of all, as a model has it (CARILLON_TEST_SEED=${SEED})`, async () => {
  const database = await freshDatabase();
  await migrate(database.url);
  const db = openDatabase({ url: database.url, acceptConnections: 1, connections: 2, onError: () => {} });
  const random = createRandom(SEED);
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const { rows } = await db.own.query<{ id: number }>(
        "insert into carillon.tenants (name, weight) select $1 || n, w from unnest($2::int[]) with ordinality as w(w, n) returning id",
        [`turns-${round}-`, Array.from({ length: 1 + random(12) }, () => (random(2) === 0 ? 1 : 1 + random(4)))],
      );
      const tenants = rows.map(({ id }) => id);
      // The clock stands still, so that what is remembered of flows never runs out.
      const queue = createPostgresQueue(db.work, () => 0);
      const cursors = new Map<number, Turn>();
      await accept(db.own, tenants, random);
      for (let isOver = false; !isOver; ) {
        // Of more, turns are longer than one each.
        const size = 1 + (random(3) === 0 ? random(39) : random(12));
        const notTenants = random(5) === 0 ? tenants.filter(() => random(3) === 0) : [];
        const before = await waiting(db.own, notTenants);
        const want = expected(before, size, cursors);
        const got = await queue.claim(1, size, LEASE_MS, { ranks: [0, 1, 2, 3], notTenants });
        assert.deepEqual(
          got.map(({ seq }) => seq),
          want,
          `round ${round}: ${size} of ${before.length}`,
        );
        if (random(6) === 0 && round % 2 === 0) await accept(db.own, tenants, random);
        isOver = before.length === 0 && notTenants.length === 0;
        if (random(40) === 0) break;
      }
      await db.own.query("truncate carillon.ready, carillon.later, carillon.claims");
    }
  } finally {
    await db.close();
    await database.drop();
  }
});
