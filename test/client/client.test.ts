// The typed client: what it sends, what it retries, what it gives up on.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { propagation } from "@opentelemetry/api";
import { CarillonError, createClient, type NotificationRequest, UnreachableError } from "#client/client.ts";
import { ADMIN_KEY, email, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const client = () => createClient({ url: `${service.url}/`, key: ADMIN_KEY });
const request: NotificationRequest = email();
/** What the types would not let through. */
const wrong = { channel: "sms", content: {} } as unknown as NotificationRequest;

/** Lets `lose` decide the fate of each answer; records the keys that went out. */
function flaky(lose: (attempt: number) => "request" | "answer" | number | undefined) {
  const sent: (string | undefined)[] = [];
  const waits: number[] = [];
  const through: typeof fetch = async (input, init) => {
    const fate = lose(sent.length + 1);
    sent.push(typeof init?.body === "string" ? JSON.parse(init.body).idempotencyKey : undefined);
    if (fate === "request") throw new TypeError("fetch failed");
    if (typeof fate === "number") return new Response("busy", { status: fate, headers: { "retry-after": "2" } });
    const answer = await fetch(input, init);
    if (fate !== "answer") return answer;
    await answer.body?.cancel();
    throw new TypeError("terminated");
  };
  const sleep = async (ms: number) => void waits.push(ms);
  return { sent, waits, client: createClient({ url: service.url, key: ADMIN_KEY, fetch: through, sleep }) };
}

test("sends, reads, lists, cancels and counts", async () => {
  const c = client();
  const { notificationId, status } = await c.send({ ...request, metadata: { from: "client" } });
  assert.equal(status, "queued");
  const detail = await c.get(notificationId);
  assert.deepEqual([detail.content, detail.events.length, detail.attempts], [request.content, 1, []]);
  const { summary } = await c.sendBatch([request, wrong]);
  assert.deepEqual([summary.succeeded, summary.failed], [1, 1]);
  const listed = await c.list({ metadata: { from: "client" }, status: "queued", limit: 5 });
  assert.deepEqual(
    listed.data.map(({ notificationId: id }) => id),
    [notificationId],
  );
  assert.deepEqual(await c.cancel(notificationId), { notificationId, cancelled: true });
  assert.equal((await c.cancel(notificationId)).cancelled, false);
  assert.equal((await c.queue()).engine, "postgres");
  assert.equal((await c.ledger()).balanced, true);
});

test("reschedules, and keeps schedules and reminders", async () => {
  const c = client();
  const { notificationId } = await c.send({ ...request, scheduledFor: "2099-01-01T00:00:00.000Z" });
  const moved = await c.reschedule(notificationId, { scheduledFor: "2098-01-01T00:00:00.000Z", priority: "low" });
  assert.deepEqual([moved.status, moved.priority, moved.scheduledFor], ["pending", "low", "2098-01-01T00:00:00.000Z"]);

  const notification = { channel: "console" as const, content: { body: "Hello" } };
  const { nextAt } = await c.schedules.put("weekly", { cron: "0 9 * * 1", timezone: "Europe/Paris", notification });
  assert.equal((await c.schedules.next("weekly", 2)).data[0], nextAt);
  assert.equal((await c.schedules.pause("weekly")).paused, true);
  assert.equal((await c.schedules.resume("weekly")).paused, false);
  assert.deepEqual((await c.schedules.runs("weekly")).data, []);
  assert.equal((await c.schedules.list({ limit: 10 })).data.length, 1);
  assert.equal((await c.schedules.get("weekly")).cron, "0 9 * * 1");
  await c.schedules.delete("weekly");
  await assert.rejects(c.schedules.get("weekly"), { code: "NOT_FOUND" });

  assert.deepEqual((await c.reminders.putScope("guild:1", ["P1D"])).before, ["P1D"]);
  const reminder = { at: "2099-01-01T20:00:00.000Z", scopes: ["guild:1"], notification };
  const { plan } = await c.reminders.put("game", reminder);
  assert.deepEqual(
    plan.map(({ before, status }) => [before, status]),
    [["P1D", "planned"]],
  );
  assert.equal((await c.reminders.get("game")).offsetsFrom, "guild:1");
  assert.equal((await c.reminders.list({ scope: "guild:1" })).data.length, 1);
  assert.equal((await c.reminders.getScope("guild:1")).replan?.total, 0);
  await c.reminders.delete("game");
});

test("listAll walks every page", async () => {
  const c = client();
  await c.sendBatch(
    Array.from({ length: 25 }, () => ({ ...request, recipient: { email: "a@b.co", userId: "walked" } })),
  );
  const seen = new Set<string>();
  for await (const { notificationId } of c.listAll({ userId: "walked", limit: 10 })) seen.add(notificationId);
  assert.equal(seen.size, 25);
});

test("a lost answer is asked for again with the same key: one notification, not two", async () => {
  const { client: c, sent } = flaky((attempt) => (attempt <= 2 ? "answer" : undefined));
  const before = (await client().ledger()).accepted;
  await c.send(request);
  assert.equal(sent.length, 3);
  assert.equal(new Set(sent).size, 1);
  assert.equal((await client().ledger()).accepted, before + 1);
});

test("the caller's own idempotency key is kept", async () => {
  const { client: c, sent } = flaky((attempt) => (attempt === 1 ? "request" : undefined));
  await c.send({ ...request, idempotencyKey: "mine" });
  assert.deepEqual(sent, ["mine", "mine"]);
});

test("503 is retried no sooner than Retry-After, and in the end reported", async () => {
  const { client: c, sent, waits } = flaky((attempt) => (attempt <= 2 ? 503 : undefined));
  await c.send(request);
  assert.equal(sent.length, 3);
  assert.ok(waits.every((ms) => ms >= 2000));
  const down = flaky(() => 503);
  await assert.rejects(
    down.client.send(request),
    (error: unknown) => error instanceof CarillonError && error.status === 503,
  );
  assert.equal(down.sent.length, 5);
  const gone = flaky(() => "request");
  await assert.rejects(gone.client.send(request), TypeError);
  assert.equal(gone.sent.length, 5);
});

test("what is wrong with the request is said once, with every fault", async () => {
  const { client: c, sent } = flaky(() => undefined);
  await assert.rejects(c.send(wrong), (error: unknown) => {
    assert.ok(error instanceof CarillonError);
    assert.deepEqual([error.status, error.code, error.errors.length], [422, "VALIDATION_FAILED", 2]);
    return true;
  });
  assert.equal(sent.length, 1);
});

test("an error names what was asked for, and brings the problem as it came", async () => {
  const nowhere = "018f2c1d-7000-7000-8000-000000000000";
  await assert.rejects(client().get(nowhere), (error: unknown) => {
    assert.ok(error instanceof CarillonError);
    const url = `${service.url}/v1/notifications/${nowhere}`;
    assert.deepEqual([error.method, error.url], ["GET", url]);
    assert.equal(error.message, `NOT_FOUND: there is no notification ${nowhere} [GET ${url}]`);
    const { status, code, title, requestId = "" } = error.problem;
    assert.deepEqual([status, code, title], [404, "NOT_FOUND", "There is no such thing"]);
    assert.match(requestId, /^[0-9a-f-]{36}$/);
    return true;
  });
  const away = createClient({ url: "http://127.0.0.1:1", key: "k", maxAttempts: 1 });
  await assert.rejects(away.pause("channel", "email", { reason: "why" }), (error: unknown) => {
    assert.ok(error instanceof UnreachableError && error.cause instanceof Error);
    assert.equal(error.message, "fetch failed [POST http://127.0.0.1:1/v1/channels/email/pause]");
    return true;
  });
});

test("whether it is well is answered, also with no; metrics are text", async () => {
  const c = client();
  assert.ok((await c.health()).checks.some(({ name, healthy }) => name === "database" && healthy));
  assert.match(await c.metrics(), /^# HELP /m);
  const { client: unwell, sent } = flaky(() => 503);
  await unwell.ready();
  assert.equal(sent.length, 1);
});

test("an inbox is followed as it fills", async (t) => {
  const userId = "follows-an-inbox";
  const whole = await startService({ roles: ["api", "stream", "worker"] });
  t.after(() => whole.stop());
  const c = createClient({ url: whole.url, key: ADMIN_KEY });
  const { position, unread } = await c.inbox.list(userId);
  assert.equal(unread, 0);
  await c.send({ channel: "inbox", recipient: { userId }, content: { title: "Hello" } });
  for await (const event of c.inbox.follow(userId, { after: position })) {
    if (event.event !== "notification") continue;
    assert.equal(event.item.title, "Hello");
    assert.deepEqual(await c.inbox.read(userId, [event.item.id]), { marked: 1, unread: 0 });
    break;
  }
});

test("an aborted call stops trying", async () => {
  const abort = new AbortController();
  const { client: c, sent } = flaky((attempt) => {
    if (attempt === 2) abort.abort(new Error("enough"));
    return 503;
  });
  await assert.rejects(c.send(request, { signal: abort.signal }), /enough/);
  assert.equal(sent.length, 2);
});

test("what is sent from within a trace is part of it", async (t) => {
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  // As an SDK sets one.
  propagation.setGlobalPropagator({
    inject: (_context, carrier, setter) => setter.set(carrier, "traceparent", traceparent),
    extract: (context) => context,
    fields: () => ["traceparent"],
  });
  t.after(() => propagation.disable());
  const { notificationId } = await client().send(request);
  assert.equal((await client().get(notificationId)).traceId, traceparent.slice(3, 35));
});
