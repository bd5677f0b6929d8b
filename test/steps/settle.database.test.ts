// Settlements that share a commit: what one of them says does not fail the others.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import type { Attempt, Ended } from "#domain/attempt.ts";
import { retryPolicies } from "#domain/retry-policy.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import type { Queue } from "#queue/queue.ts";
import { createSettlements, settle } from "#steps/walk/settle.ts";
import { sweep } from "#steps/walk/sweep.ts";
import { type Service, startService } from "../support/service.ts";

const TOTAL = 200;
let service: Service;
let queue: Queue;
before(async () => {
  service = await startService();
  queue = createPostgresQueue(service.db, () => performance.now());
});
after(() => service.stop());
beforeEach(async () => {
  await service.db.query(
    `select carillon.accept((select json_agg(json_build_object('i', carillon.new_id(), 't', 1, 'c', 'console',
      'p', 2, 'r', '{"channel":"console","content":{}}'::json)) from generate_series(1, $1) n), false)`,
    [TOTAL],
  );
});

/** What the record says of each, in order. */
async function recorded(attempts: readonly Attempt[]) {
  const { rows } = await service.db.query<{
    id: string;
    status: string;
    outcome: string;
    error: string;
    detail: object;
  }>(
    `select r.id, r.status, e.outcome, e.error, e.detail from carillon.records r
     join carillon.events e on e.notification_id = r.id where r.id = any ($1::uuid[])`,
    [attempts.map(({ id }) => id)],
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  return attempts.map(({ id }) => byId.get(id));
}

const settling = (refused: (ended: Ended) => void) =>
  createSettlements({
    queue,
    abreast: 1,
    patienceMs: 1_000,
    monotonic: () => performance.now(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    facts: { refused },
  });

test("what the database refuses is written without what was said, and all others as they are", async () => {
  const attempts = await queue.claim(1, TOTAL, 30_000);
  const devices = [{ token: "t", outcome: "accepted", provider: "p", code: "1" }];
  const odd: { [n: number]: Omit<Ended, "attempt"> } = {
    3: { settlement: { to: "failed" }, line: { outcome: "rejected", provider: "p", error: "no\0t good" } },
    77: { settlement: { to: "sent" }, line: { outcome: "accepted", receipt: randomBytes(9_000).toString("hex") } },
    78: { settlement: { to: "sent" }, line: { outcome: "accepted", cost: 1e300 } },
    199: {
      settlement: { to: "pending", waitMs: 1e300, spendsAttempt: true },
      line: { outcome: "limited", error: "later", detail: { devices } },
    },
  };
  const refused: number[] = [];
  const settlements = settling(({ attempt }) => void refused.push(attempts.indexOf(attempt)));
  const plain: Omit<Ended, "attempt"> = { settlement: { to: "sent" }, line: { outcome: "accepted" } };
  const answers = await Promise.all(
    attempts.map((attempt, n) => settle({ attempt, ...(odd[n] ?? plain) }, settlements)),
  );
  assert.ok(answers.every(Boolean));
  assert.deepEqual(refused, [3, 77, 78, 199]);

  const records = await recorded(attempts);
  const unsaid = "what was said cannot be written";
  for (const [n, record] of records.entries()) {
    const { settlement, line } = odd[n] ?? plain;
    assert.deepEqual([record?.status, record?.outcome], [settlement.to, line?.outcome], `${n}`);
    assert.equal(record?.error, n in odd ? unsaid : null);
  }
  // Whom a push has reached is known from the record alone.
  assert.deepEqual(records[199]?.detail, { devices: [{ token: "t", outcome: "accepted", provider: "p" }] });
  assert.equal((await queue.depth(service.db)).processing, 0);
});

test("a settlement that cannot be written at all fails alone", async () => {
  const attempts = await queue.claim(1, TOTAL, 30_000);
  const refused: number[] = [];
  const settlements = settling(({ attempt }) => void refused.push(attempts.indexOf(attempt)));
  const answers = await Promise.all(
    attempts.map((attempt, n) =>
      settle({ attempt, settlement: { to: "sent" }, line: { outcome: n === 5 ? "\0" : "accepted" } }, settlements),
    ),
  );
  assert.deepEqual(
    answers.flatMap((isWritten, n) => (isWritten ? [] : [n])),
    [5],
  );
  assert.deepEqual(refused, [5, 5]);
  assert.equal((await queue.depth(service.db)).processing, 1);
  await service.db.query("delete from carillon.claims");
});

test("one that cannot be settled when it is swept does not keep the others from it", async () => {
  const attempts = await queue.claim(1, TOTAL, 0);
  await service.db.query(
    `update carillon.notifications set request = '{"channel":"console","content":{},"retryPolicy":{"firstBackoffMs":1e300,"maxBackoffMs":1e300}}'
     where id = $1`,
    [attempts[9]?.id],
  );
  const refused: string[] = [];
  const swept = await sweep({
    db: service.db,
    queue,
    worker: 2,
    count: TOTAL,
    leaseMs: 30_000,
    retry: retryPolicies(),
    random: () => 0,
    facts: { refused: ({ attempt: { id } }) => void refused.push(id) },
  });
  assert.deepEqual([swept, refused], [TOTAL, [attempts[9]?.id]]);
  const records = await recorded(attempts);
  // Those whose time has come meanwhile wait in the queue.
  const isWaiting = (status = "") => status === "pending" || status === "queued";
  assert.ok(records.every((record) => isWaiting(record?.status) && record?.outcome === "lost"));
});
