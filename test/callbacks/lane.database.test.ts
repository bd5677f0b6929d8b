// Callbacks are in the queue and in the record, and nowhere among notifications.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { handedBack } from "#domain/attempt.ts";
import { createIds } from "#domain/ids.ts";
import { CALLBACK_RANK } from "#domain/priority.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { retire } from "#store/housekeeping.ts";
import { ask, email, type Service, startService } from "../support/service.ts";

let service: Service;
let queue: ReturnType<typeof createPostgresQueue>;
before(async () => {
  service = await startService();
  queue = createPostgresQueue(service.db, () => performance.now());
});
after(() => service.stop());

const newId = createIds();
const RANKS = { ranks: [CALLBACK_RANK] };
const rowOf = (tenant: number, id = newId()) => ({
  i: id,
  t: -tenant,
  c: "callback",
  p: CALLBACK_RANK,
  u: "ep_1",
  r: { channel: "callback", content: {} },
});
const timeless = (body: unknown) => JSON.stringify(body).replace(/"oldestAgeMs":[0-9]+/g, "");
const offer = (rows: object[]) => service.db.query("select carillon.accept($1, false)", [JSON.stringify(rows)]);
const claimAll = async (takes?: typeof RANKS) => {
  const claimed = await queue.claim(1, 100, 30_000, takes);
  await queue.settle(claimed.map(handedBack));
  return claimed.map(({ tenant }) => tenant);
};

test("lists, ledger, depth and health of notifications know nothing of callbacks", async () => {
  const { body: sent } = await service.ask("POST", "/v1/notifications", email());
  const before = timeless(await ask(service, "/v1/queue"));
  const ledger = await ask(service, "/v1/ledger");
  await offer([rowOf(1), rowOf(1)]);
  assert.deepEqual(timeless(await ask(service, "/v1/queue")), before);
  assert.deepEqual(await ask(service, "/v1/ledger"), ledger);
  assert.deepEqual(
    (await ask(service, "/v1/notifications")).data.map(
      ({ notificationId }: { notificationId: string }) => notificationId,
    ),
    [sent.notificationId],
  );
  const { depth, processing, scheduled } = await queue.depth(service.db);
  assert.deepEqual([depth.normal, depth.low, processing, scheduled], [1, 0, 0, 0]);
  assert.deepEqual((await queue.figures(service.db)).depth, { urgent: 0, high: 0, normal: 1, low: 0 });
  const untaken = await queue.untaken(service.db, [{ lanes: [] }]);
  assert.deepEqual(
    untaken.map(({ lane, count }) => [lane, count]),
    [["normal", 1]],
  );
});

test("a worker of notifications takes none, one of callbacks takes nothing else", async () => {
  assert.deepEqual(await claimAll(), [1]);
  assert.deepEqual(await claimAll(RANKS), [-1, -1]);
});

test("tenants take turns with their callbacks, all the way round", async () => {
  await service.db.query("insert into carillon.tenants (name) select 't' || n from generate_series(2, 4) n");
  await offer([rowOf(2), rowOf(2), rowOf(4), rowOf(4), rowOf(3), rowOf(3)]);
  const turns: number[] = [];
  for (let n = 0; n < 8; n++) turns.push((await queue.claim(1, 1, 30_000, RANKS))[0]?.tenant ?? 0);
  assert.deepEqual([...new Set(turns.slice(0, 4))].sort(), [-1, -2, -3, -4]);
  assert.deepEqual([...turns].sort(), [-1, -1, -2, -2, -3, -3, -4, -4]);
  await service.db.query("update carillon.claims set lease_until = now()");
  assert.equal((await queue.sweep(1, 100, 1)).length, 8);
  await service.db.query("delete from carillon.claims");
});

test("the callbacks of a paused tenant wait with it, and are there when it goes on", async () => {
  await offer([rowOf(2), rowOf(3)]);
  await queue.pause(service.db, { kind: "tenant", name: "t2" }, { reason: "a test" });
  assert.deepEqual(await claimAll(RANKS), [-3]);
  await queue.resume(service.db, { kind: "tenant", name: "t2" });
  assert.deepEqual((await claimAll(RANKS)).sort(), [-2, -3]);
});

test("the scheduler is not woken by a callback that is due", async () => {
  const soon = newId();
  await offer([{ ...rowOf(2, soon), d: new Date(Date.now() + 3_600_000).toISOString() }]);
  await service.db.query("update carillon.later set due_at = carillon.now() where id = $1", [soon]);
  assert.deepEqual(await queue.nextDue().then(({ hasDue, inMs }) => [hasDue, inMs]), [false, undefined]);
  assert.equal((await claimAll(RANKS)).length, 3);
});

test("one that has ended can be sent again, one that waits be cancelled", async () => {
  const id = newId();
  await offer([rowOf(3, id)]);
  assert.equal(await queue.cancel(service.db, -3, id), true);
  assert.deepEqual(await queue.retry(service.db, -3, [id]), [id]);
  assert.equal(await queue.cancel(service.db, -3, id), true);
});

test("retention ends the keeping of callbacks that are over, and of none that waits", async () => {
  const old = createIds(() => Date.now() - 90 * 86_400_000);
  const [over, waits] = [old(), old()];
  await offer([rowOf(3, over), rowOf(3, waits)]);
  await queue.cancel(service.db, -3, over);
  await service.db.query(
    "update carillon.notifications set accepted_at = accepted_at - interval '90 days' where id = any ($1)",
    [[over, waits]],
  );
  for await (const _ of retire(service.db, 30, 1_000));
  const { rows } = await service.db.query("select id from carillon.notifications where id = any ($1)", [[over, waits]]);
  assert.deepEqual(rows, [{ id: waits }]);
});

test("a lane below that of callbacks is refused", async () => {
  await assert.rejects(offer([{ ...rowOf(1), p: 5 }]), /priority_check/);
});
