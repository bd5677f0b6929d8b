// Accepted means kept: the whole service, its embedded PostgreSQL included, is killed under load again and again.
//
// Set CARILLON_TEST_SEED to repeat the choices of an earlier run.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NotificationRequest } from "#domain/notification.ts";
import {
  acknowledgedBy,
  assertKept,
  type Call,
  countStored,
  type Load,
  perform,
  readStored,
  seeded,
  startLoad,
} from "../support/load.ts";
import { type ServiceProcess, sandboxFor } from "../support/process.ts";

const ROUNDS = 20;
const SENDERS = 25;

test("every id that got a 2xx survives kill -9 of the whole process, 20 rounds", { timeout: 600_000 }, async (t) => {
  const seed = Number(process.env.CARILLON_TEST_SEED ?? Math.floor(Math.random() * 1e9));
  t.diagnostic(`seed ${seed}`);
  const random = seeded(seed);
  const sandbox = await sandboxFor(t);
  const acknowledged = new Map<string, NotificationRequest>();
  let unkeyedUnsettled = 0;

  // One that is killed leaves no compiled code behind for the next; this one does.
  await sandbox.run(["--version"]);
  let service = await sandbox.start();
  for (let round = 0; round < ROUNDS; round++) {
    const load = startLoad({ ask: service.ask, senders: SENDERS, random, name: `round ${round}` });
    const enough = 1 + Math.floor(random() * 600);
    await load.until(() => load.acknowledged.size >= enough);
    if (round % 2 === 1) process.kill(sandbox.server().pid, "SIGKILL");
    await service.end("SIGKILL");
    await load.ended;
    for (const [id, request] of load.acknowledged) acknowledged.set(id, request);
    assertOnlyTheKillFailed(load);

    if (round % 5 === 4) {
      // Once more in the middle of a start: the database is up, the service is not yet.
      const unlucky = sandbox.launch();
      await unlucky.says(/PostgreSQL started/);
      await unlucky.end("SIGKILL");
    }
    service = await sandbox.start();
    const db = await sandbox.connect();
    const stored = await readStored(db);
    assertKept(acknowledged, stored);

    // A 503 promises nothing either way, just as no answer.
    const unsettled = load.outcomes.filter((outcome) => acknowledgedBy(outcome).length === 0).map(({ call }) => call);
    const counts = countStored(stored);
    for (const { name, requests } of unsettled) {
      const count = counts.get(name) ?? 0;
      assert.ok(count === 0 || count === requests.length, `${name}: ${count} of ${requests.length} are stored`);
    }
    for (const call of unsettled.filter(({ isKeyed }) => isKeyed)) {
      const ids = await assertSentOnce(service, call, counts.has(call.name));
      for (const [id, request] of ids) acknowledged.set(id, request);
    }
    unkeyedUnsettled += sizeOf(unsettled.filter(({ isKeyed }) => !isKeyed));

    const { rows: repeated } = await db.query(`select request ->> 'idempotencyKey' as key, count(*)
      from carillon.notifications where request ->> 'idempotencyKey' is not null group by 1 having count(*) > 1`);
    assert.deepEqual(repeated, [], "an idempotency key has more than one notification");
    assert.deepEqual((await db.query("show fsync")).rows, [{ fsync: "on" }]);
    await db.end();

    const { body: ledger } = await service.ask("GET", "/v1/ledger");
    assert.equal(ledger.balanced, true, JSON.stringify(ledger));
    assert.ok(ledger.accepted >= acknowledged.size, `${ledger.accepted} < ${acknowledged.size}`);
    assert.ok(ledger.accepted <= acknowledged.size + unkeyedUnsettled, "there is more than was sent");
  }
  t.diagnostic(`${acknowledged.size} acknowledged, ${unkeyedUnsettled} without an answer and without a key`);
  assert.deepEqual((await service.end("SIGTERM")).code, 0);
});

/** Until the kill every answer is a success; when the database dies a moment before, it may also be a 503. */
function assertOnlyTheKillFailed({ outcomes }: Load): void {
  for (const { answer, call } of outcomes) {
    if (!answer) continue;
    assert.ok([200, 202, 503].includes(answer.status), `${call.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
    if (answer.status === 503) assert.equal(answer.body.code, "DATABASE_UNAVAILABLE");
  }
}

/** The same call again: a replay if it was stored, an acceptance if not. */
async function assertSentOnce(service: ServiceProcess, call: Call, isStored: boolean) {
  const outcome = await perform(service.ask, call);
  const { answer, failure } = outcome;
  assert.equal(
    answer?.status,
    isStored || call.isBatch ? 200 : 202,
    `${call.name}: ${failure} ${JSON.stringify(answer?.body)} ${service.stderr()}`,
  );
  if (call.isBatch) {
    const results: { replayed?: boolean }[] = answer?.body.results;
    assert.ok(results.every(({ replayed = false }) => replayed === isStored));
  }
  const ids = acknowledgedBy(outcome);
  assert.equal(ids.length, call.requests.length);
  return ids;
}

const sizeOf = (calls: Call[]): number => calls.reduce((sum, { requests }) => sum + requests.length, 0);
