// The audit of a move finds what is nowhere, what is in two places and what has ended and yet waits; otherwise it balances, engine by engine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { auditOn, beginAudit, type MoveAudit } from "#queue/postgres/move-audits.ts";
import { findMove } from "#queue/postgres/moves.ts";
import { LEASE_MS, SENT, settled } from "../conformance/queue-harness.ts";
import { openMovingQueue } from "../support/moving-queue.ts";

const { harness, skip, begin, abort, step, normal } = await openMovingQueue();

const deliver = async (count: number) => {
  const attempts = await harness.queue.claim(1, count, LEASE_MS);
  assert.equal(attempts.length, count);
  await harness.queue.settle(attempts.map((attempt) => settled(attempt, SENT)));
};
const change = (text: string, ...values: unknown[]) => harness.db.query(text, values);
/** All steps of it, as the keeper makes them. */
async function audited(size = 1000): Promise<MoveAudit> {
  while ((await auditOn(harness.db, size)).id !== undefined);
  return (await findMove(harness.db))?.audit as MoveAudit;
}
const again = async () => {
  await beginAudit(harness.db, (await findMove(harness.db))?.id ?? 0);
  return audited();
};
const figures = ({ engines }: MoveAudit) =>
  Object.fromEntries(engines.map(({ engine, accepted, ended, waiting }) => [engine, [accepted, ended, waiting]]));

test("what was there and what came balances for each engine, and the audit log says so", { skip }, async () => {
  await normal(5);
  await deliver(2);
  const [held] = await harness.queue.claim(1, 1, LEASE_MS);
  await begin("redis");
  await normal(4);
  await harness.enqueue(["low"], { scheduledFor: new Date(Date.now() + 3_600_000).toISOString() });
  assert.equal((await findMove(harness.db))?.audit, null, "it is made when the move has ended");
  assert.deepEqual(await auditOn(harness.db, 1000), { looked: 0, id: undefined, isOver: false });
  await deliver(3);
  await step();
  assert.equal((await findMove(harness.db))?.audit?.state, "looking");
  await normal(7);
  const audit = await audited();
  assert.deepEqual(figures(audit), { postgres: [4, 2, 2], redis: [4, 1, 3] }, "what came after the end is not of it");
  assert.deepEqual([audit.state, audit.isWhole, audit.amiss, audit.examples], ["balanced", true, 0, []]);
  assert.ok(held && audit.at);
  const { rows } = await change("select action, after from carillon.audit");
  assert.equal(rows.length, 1);
  assert.equal(rows[0]?.action, "queue.audit");
  assert.equal(rows[0]?.after.balanced, true);
  assert.deepEqual(rows[0]?.after.engines[1], { engine: "redis", accepted: 4, ended: 1, waiting: 3 });
});

test("a row of ready that is gone is found, and named", { skip }, async () => {
  await begin("redis");
  await step();
  await normal(3);
  await begin("postgres");
  const [lost, other] = await normal(2);
  await step();
  await change("delete from carillon.ready where id = $1", lost);
  const audit = await audited();
  assert.deepEqual([audit.state, audit.amiss, audit.examples], ["unbalanced", 1, [lost]]);
  assert.deepEqual(figures(audit), { postgres: [2, 0, 1], redis: [3, 0, 3] });
  assert.equal(
    (await change("select after from carillon.audit order by seq desc limit 1")).rows[0]?.after.balanced,
    false,
  );

  await change("delete from carillon.ready where id <> $1", other);
  const worse = await again();
  assert.deepEqual([worse.amiss, worse.examples.length, worse.examples.includes(other as string)], [4, 4, false]);
});

test("an open bit of a handoff that is set by nobody's claim is found", { skip }, async () => {
  await normal(1);
  await begin("redis");
  const [, lost] = await normal(3);
  await deliver(1);
  await step();
  await change("update carillon.handoffs set done = set_bit(done, 1, 1)");
  const audit = await audited();
  assert.deepEqual([audit.state, audit.examples], ["unbalanced", [lost]]);
  assert.deepEqual(figures(audit), { postgres: [1, 1, 0], redis: [3, 0, 2] });
});

test("what is in two places is found, also where what is nowhere makes up for it, and so is what has ended and yet waits", {
  skip,
}, async () => {
  const [first, second] = await normal(3);
  await begin("redis");
  await deliver(1);
  await begin("postgres").catch(() => undefined);
  const [twice, lost] = await normal(2);
  await change(
    `insert into carillon.ready (priority, seq, tenant, id, pool)
    select priority, seq, tenant, id, pool from carillon.notifications where id = any ($1)`,
    [first, twice],
  );
  await change(
    `update carillon.handoffs h set done = set_bit(done, carillon.queue_place(h.seqs, length(h.done), n.seq), 1)
    from carillon.notifications n where n.id = $1 and n.handoff = h.number`,
    lost,
  );
  const id = (await findMove(harness.db))?.id ?? 0;
  await beginAudit(harness.db, id);
  const audit = await audited();
  assert.equal(audit.state, "unbalanced");
  assert.deepEqual(audit.examples.toSorted(), [first, twice, lost].toSorted());
  assert.deepEqual(figures(audit), { postgres: [3, 1, 3], redis: [2, 0, 2] }, "sums alone would not tell it");
  assert.ok(second);
});

test("an aborted move says of each engine what went there, and the steps may be as small as one likes", {
  skip,
}, async () => {
  await normal(1100);
  await begin("redis");
  await normal(3);
  await abort();
  await normal(2);
  await step();
  const audit = await audited(1);
  assert.deepEqual(figures(audit), { postgres: [1102, 0, 1102], redis: [3, 0, 3] });
  assert.equal(audit.state, "balanced");
});

test("what has gone by retention had ended; where the feed has forgotten some it is not whole", { skip }, async () => {
  const [gone] = await normal(2);
  await begin("redis");
  await deliver(2);
  await change("delete from carillon.notifications where id = $1", gone);
  await step();
  assert.deepEqual(figures(await audited()), { postgres: [2, 2, 0] });
  await change(
    "insert into carillon.epochs (cluster, started_at) values (carillon.read_cluster(), pg_postmaster_start_time()) on conflict do nothing",
  );
  await change("update carillon.epochs set forgotten_key = pg_current_xact_id()::text::bigint");
  const audit = await again();
  await change("update carillon.epochs set forgotten_key = 0");
  assert.deepEqual([audit.isWhole, audit.state], [false, "balanced"]);
});

test("it balances while senders, workers and cancellers are at work, with every acceptance counted once", {
  skip,
}, async () => {
  const accepted: string[] = await normal(50);
  let isOver = false;
  let target = 0;
  // They rest while the last of the move is drained: else workers might never come to its end.
  const sending = Array.from({ length: 3 }, async () => {
    while (!isOver) {
      if (accepted.length < target) accepted.push(...(await harness.enqueue(["high", "normal", "low", "normal"])));
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  const working = [harness.queue, harness.another].map(async (queue, n) => {
    while (!isOver) {
      const attempts = await queue.claim(n + 1, 7, LEASE_MS);
      await queue.settle(attempts.map((attempt) => settled(attempt, SENT)));
    }
  });
  const cancelling = (async () => {
    while (!isOver) await harness.queue.cancel(harness.db, 1, accepted.at(-1) as string);
  })();
  for (const to of ["redis", "postgres", "redis", "postgres"] as const) {
    target = accepted.length + 200;
    await begin(to);
    while (accepted.length < target) await step();
    while ((await findMove(harness.db))?.endedAt === null) await step();
    const audit = await audited(200);
    assert.deepEqual([audit.state, audit.isWhole, audit.examples], ["balanced", true, []]);
    for (const { accepted: n, ended, waiting } of audit.engines) assert.equal(n, ended + waiting);
  }
  isOver = true;
  await Promise.all([...sending, ...working, cancelling]);
  await change("truncate carillon.engine_moves, carillon.engine_audits");
  await begin("redis");
  const { rows } = await change("select sum(cardinality(ids))::int as n from carillon.engine_move_lists");
  const { rows: waits } = await change("select count(*)::int as n from carillon.queue_entries");
  assert.equal(rows[0]?.n ?? 0, waits[0]?.n);
});
