// PATCH /v1/notifications/:id: another time, expiry or priority, or a clear no.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { ask, email, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const HOUR = 3_600_000;
async function accepted(more: object = {}): Promise<string> {
  return (await service.ask("POST", "/v1/notifications", { ...email(), ...more })).body.notificationId;
}
const patch = (id: string, body: unknown) => service.ask("PATCH", `/v1/notifications/${id}`, body);
const read = (id: string) => ask(service, `/v1/notifications/${id}`);

test("what waits for later can be sent now, later still, or with another priority", async () => {
  const id = await accepted({ scheduledFor: inMs(HOUR) });
  const later = inMs(2 * HOUR);
  const { status, body } = await patch(id, { scheduledFor: later, priority: "urgent" });
  assert.equal(status, 200);
  assert.deepEqual(body, { notificationId: id, status: "pending", priority: "urgent", scheduledFor: later });
  const record = await read(id);
  assert.deepEqual([record.status, record.priority, record.scheduledFor], ["pending", "urgent", later]);
  assert.deepEqual(
    record.events.map(({ type, to }: { type: string; to: string }) => [type, to]),
    [
      ["accepted", "pending"],
      ["rescheduled", "pending"],
    ],
  );

  assert.equal((await patch(id, { scheduledFor: "2020-01-01T00:00:00Z" })).body.status, "queued");
  assert.equal((await read(id)).status, "queued");
  const { rows } = await service.db.query("select priority from carillon.ready where id = $1", [id]);
  assert.deepEqual(rows, [{ priority: 0 }]);
});

test("what is queued can be put off, and is claimed in its new lane", async () => {
  const id = await accepted();
  assert.equal((await patch(id, { scheduledFor: inMs(HOUR) })).body.status, "pending");
  assert.equal((await patch(id, { priority: "low" })).body.status, "pending", "what is not named stays");
  await service.db.query("update carillon.later set due_at = now() - interval '1 s' where id = $1", [id]);
  assert.equal((await read(id)).status, "queued");
  const queue = createPostgresQueue(service.db, () => performance.now());
  const claimed = await queue.claim(1, 10, 30_000, { ranks: [3] });
  assert.deepEqual(
    claimed.map(({ id: claimedId, rank, number }) => [claimedId, rank, number]),
    [[id, 3, 1]],
  );
});

test("an expiry can be set, moved and taken away, but never lie before the time", async () => {
  const id = await accepted({ scheduledFor: inMs(HOUR), expiresAt: inMs(2 * HOUR) });
  const early = await patch(id, { scheduledFor: inMs(3 * HOUR) });
  assert.deepEqual(
    [early.status, early.body.errors],
    [422, [{ path: "/expiresAt", message: "must be after scheduledFor" }]],
  );
  const past = await patch(id, { expiresAt: "2020-01-01T00:00:00Z" });
  assert.deepEqual(past.body.errors, [{ path: "/expiresAt", message: "must be in the future" }]);
  assert.equal((await patch(id, { scheduledFor: inMs(3 * HOUR), expiresAt: null })).body.expiresAt, undefined);
  const until = inMs(4 * HOUR);
  assert.equal((await patch(id, { expiresAt: until })).body.expiresAt, until);
  assert.equal((await read(id)).expiresAt, until);
});

test("nonsense is refused and changes nothing", async () => {
  const at = inMs(HOUR);
  const id = await accepted({ scheduledFor: at });
  for (const body of [
    {},
    { scheduledFor: "soon" },
    { priority: "huge" },
    { channel: "sms" },
    [],
    null,
    { scheduledFor: null },
  ]) {
    assert.equal((await patch(id, body)).status, 422, JSON.stringify(body));
  }
  assert.equal((await read(id)).scheduledFor, at);
  assert.equal((await patch("0197b6a0-0000-7000-8000-000000000000", { priority: "low" })).status, 404);
});

test("what is being sent or has ended says so", async () => {
  const id = await accepted({ priority: "urgent" });
  const queue = createPostgresQueue(service.db, () => performance.now());
  const claimed = await queue.claim(1, 1000, 30_000);
  assert.ok(claimed.some((attempt) => attempt.id === id));
  const busy = await patch(id, { scheduledFor: inMs(HOUR) });
  assert.deepEqual(
    [busy.status, busy.body.code, busy.body.detail],
    [409, "NOT_RESCHEDULABLE", "the notification is processing"],
  );
  const other = await accepted();
  await service.ask("POST", `/v1/notifications/${other}/cancel`);
  assert.equal((await patch(other, { priority: "low" })).body.detail, "the notification is cancelled");
});

test("of a claim, a cancel and a reschedule that race, the outcome is one that each of them was told", async () => {
  const queue = createPostgresQueue(service.db, () => performance.now());
  await queue.claim(1, 1000, 30_000);
  for (let round = 0; round < 25; round++) {
    const isDue = round % 2 === 0;
    const id = await accepted(isDue ? {} : { scheduledFor: inMs(20) });
    if (!isDue) await sleep(25);
    const [claimed, patched, cancelled] = await Promise.all([
      queue.claim(1, 10, 30_000),
      patch(id, { scheduledFor: inMs(HOUR) }),
      service.ask("POST", `/v1/notifications/${id}/cancel`),
    ]);
    const wasClaimed = claimed.some((attempt) => attempt.id === id);
    const { status } = await read(id);
    const expected = wasClaimed ? "processing" : cancelled.status === 200 ? "cancelled" : undefined;
    if (expected) assert.equal(status, expected, `round ${round}: patched ${patched.status}`);
    else assert.equal(status, patched.status === 200 ? "pending" : "queued");
    const { rows } = await service.db.query(
      `select (select count(*) from carillon.ready where id = $1) + (select count(*) from carillon.later where id = $1)
         + (select count(*) from carillon.leased where id = $1) as places`,
      [id],
    );
    assert.equal(Number(rows[0].places), status === "cancelled" ? 0 : 1, `round ${round}`);
    await service.db.query("delete from carillon.claims");
  }
});
