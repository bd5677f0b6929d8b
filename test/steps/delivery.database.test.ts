// From acceptance to an ending, with a provider that does what it is told.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const directory = mkdtempSync(join(tmpdir(), "carillon-delivery-"));
const log = join(directory, "accepted.jsonl");
const acceptedBy = (id: string) =>
  readFileSync(log, "utf8")
    .trim()
    .split("\n")
    .filter((line) => line.includes(id)).length;

const providers: Config["providers"] = {
  good: { type: "test", log },
  rejecting: { type: "test", mix: { rejected: 1 } },
  away: { type: "test", mix: { unavailable: 1 } },
  resetting: { type: "test", log, mix: { acceptThenReset: 1 } },
  hanging: { type: "test", log, mix: { acceptThenHang: 1 } },
  slow: { type: "test", log, latencyMs: 2_500 },
  file: { type: "file", path: join(directory, "outbox.jsonl") },
};
const routes: Config["routes"] = {
  email: "good",
  push: "rejecting",
  sms: "away",
  slack: "resetting",
  webhook: "hanging",
  inbox: "slow",
  console: "good",
  file: "file",
};
const roles: Config["roles"] = ["api", "worker", "scheduler", "keeper"];

let service: Service;
before(async () => {
  service = await startService({ roles, providers, routes, leaseMs: 3_000, sweepMs: 200, sendTimeoutMs: 400 });
});
after(async () => {
  await service.stop();
  rmSync(directory, { recursive: true });
});

const content = { subject: "s", textBody: "t", body: "b" };
const recipient = {
  email: "a@b.co",
  phone: "+33612345678",
  deviceTokens: ["t"],
  slackChannel: "c",
  webhookUrl: "https://x.y",
  userId: "u",
};
const quick = { maxAttempts: 3, maxBackoffMs: 100 };

async function send(channel: string, more: object = {}, to = service): Promise<string> {
  const { status, body } = await to.ask("POST", "/v1/notifications", { channel, content, recipient, ...more });
  assert.equal(status, 202, JSON.stringify(body));
  return body.notificationId;
}
const read = async (id: string, from = service) => (await from.ask("GET", `/v1/notifications/${id}`)).body;
const ended = (id: string, from = service) =>
  until(async () => {
    const record = await read(id, from);
    return ["pending", "queued", "processing"].includes(record.status) ? undefined : record;
  });

test("a notification is sent at once, and the record says by whom, when and how", async () => {
  const { status, attempts, events } = await ended(await send("email"));
  assert.equal(status, "sent");
  assert.equal(attempts.length, 1);
  const [{ number, provider, outcome, worker, startedAt, endedAt, latencyMs }] = attempts;
  assert.deepEqual([number, provider, outcome], [1, "good", "accepted"]);
  assert.match(worker, new RegExp(`-${process.pid}-[0-9a-f-]{36}$`));
  assert.ok(startedAt <= endedAt && latencyMs >= 0);
  assert.deepEqual(
    events.map(({ type, to }: { type: string; to: string }) => [type, to]),
    [
      ["accepted", "queued"],
      ["attempt", "sent"],
    ],
  );
});

test("a file gets one line per notification", async () => {
  const ids = await Promise.all(Array.from({ length: 30 }, () => send("file")));
  await Promise.all(ids.map((id) => ended(id)));
  const lines = readFileSync(join(directory, "outbox.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ notificationId }) => notificationId).sort(), ids.sort());
  assert.equal(lines[0].content.body, "b");
});

test("what is rejected has failed at the first attempt and is a dead letter with its error", async () => {
  const id = await send("push");
  const { status, attempts } = await ended(id);
  assert.deepEqual([status, attempts.length, attempts[0].outcome], ["failed", 1, "rejected"]);
  const { body } = await service.ask("GET", "/v1/dead-letters?channel=push&provider=rejecting");
  const letter = body.data.find(({ notificationId }: { notificationId: string }) => notificationId === id);
  assert.deepEqual([letter.attempts, letter.provider], [1, "rejecting"]);
  assert.match(letter.error, /^the test provider rejects it/);
});

test("what is unavailable is tried again until its budget is spent, each wait in the schedule", async () => {
  const id = await send("sms", { retryPolicy: quick });
  const { status, attempts, events } = await ended(id);
  assert.equal(status, "failed");
  assert.deepEqual(
    attempts.map(({ number, outcome }: { number: number; outcome: string }) => [number, outcome]),
    [
      [1, "unavailable"],
      [2, "unavailable"],
      [3, "unavailable"],
    ],
  );
  assert.deepEqual(
    events.map(({ to }: { to: string }) => to),
    ["queued", "pending", "pending", "failed"],
  );
  for (let n = 1; n < 3; n++) {
    const waited = Date.parse(attempts[n].startedAt) - Date.parse(attempts[n - 1].endedAt);
    assert.ok(waited >= 50, `waited ${waited} ms, at least half of the backoff`);
  }
});

test("its expiry ends the retries earlier than its policy would", async () => {
  const expiresAt = new Date(Date.now() + 1_500).toISOString();
  const { status, attempts } = await ended(await send("sms", { expiresAt }));
  assert.equal(status, "expired");
  assert.ok(attempts.some(({ outcome }: { outcome: string }) => outcome === "unavailable"));
});

test("a lost answer is sent again by default, held if the sender says so, reconciled where the provider knows", async () => {
  const again = await ended(await send("slack", { retryPolicy: quick }));
  assert.deepEqual([again.status, again.attempts.length], ["ambiguous", 3]);
  const held = await send("slack", { onAmbiguous: "hold" });
  const { status, attempts } = await ended(held);
  assert.deepEqual([status, attempts.length, acceptedBy(held)], ["ambiguous", 1, 1]);
  assert.equal((await ended(await send("slack", { onAmbiguous: "reconcile" }))).status, "sent");
});

test("a provider that hangs is given up at the deadline", async () => {
  const id = await send("webhook", { onAmbiguous: "hold" });
  const { status, attempts } = await ended(id);
  assert.deepEqual([status, attempts[0].outcome], ["ambiguous", "ambiguous"]);
  assert.ok(attempts[0].latencyMs >= 390 && attempts[0].latencyMs < 2_000, `${attempts[0].latencyMs} ms`);
});

test("a retry sends it again with a fresh budget; what was sent cannot be retried", async () => {
  const id = await send("sms", { retryPolicy: { maxAttempts: 1 } });
  assert.equal((await ended(id)).status, "failed");
  assert.equal((await service.ask("POST", `/v1/notifications/${id}/retry`)).status, 200);
  const { attempts } = await until(async () => {
    const record = await read(id);
    return record.status === "failed" && record.attempts.length === 2 ? record : undefined;
  });
  assert.deepEqual(
    attempts.map(({ number }: { number: number }) => number),
    [1, 1],
  );
  const sent = await send("email");
  await ended(sent);
  const { status, body } = await service.ask("POST", `/v1/notifications/${sent}/retry`);
  assert.deepEqual([status, body.code], [409, "NOT_RETRYABLE"]);
  assert.equal((await service.ask("GET", "/v1/ledger")).body.balanced, true);
});

test("of racing retries one puts it back", async () => {
  const apiOnly = await startService({ roles: ["api"] });
  const id = await send("email", {}, apiOnly);
  await apiOnly.ask("POST", `/v1/notifications/${id}/cancel`);
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => apiOnly.ask("POST", `/v1/notifications/${id}/retry`)),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(9).fill(409)]);
  assert.equal((await apiOnly.db.query("select from carillon.ready")).rowCount, 1);
  assert.equal((await apiOnly.ask("GET", "/v1/ledger")).body.balanced, true);
  await apiOnly.stop();
});

test("dead letters are requeued by filter: counted first, then at most the limit, until none remain", async () => {
  const key = await service.makeKey({ tenant: "letters", scopes: ["send", "read"] });
  const ask = (method: string, path: string, body?: unknown) => service.ask(method, path, body, { key });
  const request = { channel: "push", content, recipient };
  await ask("POST", "/v1/notifications/batch", { notifications: Array(12).fill(request) });
  const count = async () => (await ask("GET", "/v1/ledger")).body.failed;
  await until(async () => ((await count()) === 12 ? true : undefined));
  const requeue = async (body: object) => (await ask("POST", "/v1/dead-letters/requeue", body)).body;
  assert.deepEqual(await requeue({ filter: { channel: "push" }, dryRun: true }), {
    matched: 12,
    requeued: 0,
    remaining: 12,
    nextCursor: null,
    dryRun: true,
  });
  assert.deepEqual(await requeue({ filter: { channel: "sms" } }), {
    matched: 0,
    requeued: 0,
    remaining: 0,
    nextCursor: null,
    dryRun: false,
  });
  const { nextCursor, ...first5 } = await requeue({ filter: { channel: "push" }, limit: 5 });
  assert.deepEqual(first5, { matched: 12, requeued: 5, remaining: 7, dryRun: false });
  assert.equal(typeof nextCursor, "string");
  const page = (await ask("GET", "/v1/dead-letters?limit=200")).body;
  await until(async () => ((await count()) === 12 ? true : undefined));
  const [first] = page.data;
  assert.equal((await requeue({ ids: [first.notificationId] })).requeued, 1);
  for (const body of [{}, { ids: [], filter: {} }, { ids: ["x"] }, { filter: { colour: "red" } }]) {
    assert.equal((await ask("POST", "/v1/dead-letters/requeue", body)).status, 422);
  }
});

test("nothing is sent after its expiry: neither what waited too long nor what the scheduler brings late", async () => {
  const apiOnly = await startService({ roles: ["api"] });
  const expiresAt = new Date(Date.now() + 2_000).toISOString();
  const late = await send("email", { expiresAt }, apiOnly);
  const scheduled = await send("email", { scheduledFor: new Date(Date.now() + 200).toISOString(), expiresAt }, apiOnly);
  await new Promise((resolve) => setTimeout(resolve, 2_050));
  const worker = await startService({ roles, providers, routes, sweepMs: 100, databaseUrl: apiOnly.databaseUrl });
  for (const id of [late, scheduled]) {
    assert.equal((await ended(id, apiOnly)).status, "expired");
    assert.equal(acceptedBy(id), 0);
  }
  await worker.stop();
  await apiOnly.stop();
});

test("priority: what is urgent overtakes a backlog", async () => {
  const apiOnly = await startService({ roles: ["api"] });
  const low = { channel: "email", content, recipient, priority: "low" };
  for (let n = 0; n < 3; n++)
    await apiOnly.ask("POST", "/v1/notifications/batch", { notifications: Array(1000).fill(low) });
  const urgent = await send("email", { priority: "urgent" }, apiOnly);
  const worker = await startService({
    roles,
    databaseUrl: apiOnly.databaseUrl,
    providers: { none: { type: "test" } },
    routes: { ...routes, email: "none" },
  });
  const [{ startedAt }] = (await ended(urgent, apiOnly)).attempts;
  const { rows } = await apiOnly.db.query("select count(*)::int as n from carillon.events where started_at < $1", [
    startedAt,
  ]);
  assert.equal(rows[0].n, 0, "nothing was claimed before it");
  await worker.stop();
  await apiOnly.stop();
});

test("a worker that stops hands back what it has not begun and finishes what it has", async () => {
  const apiOnly = await startService({ roles: ["api"] });
  const worker = await startService({
    roles: ["worker"],
    databaseUrl: apiOnly.databaseUrl,
    providers,
    routes,
    concurrency: 2,
    sendTimeoutMs: 10_000,
  });
  const ids = await Promise.all(Array.from({ length: 20 }, () => send("inbox", {}, apiOnly)));
  await until(async () => ((await apiOnly.ask("GET", "/v1/queue")).body.processing > 2 ? true : undefined));
  await worker.stop();
  const { body } = await apiOnly.ask("GET", "/v1/queue");
  const statuses = await Promise.all(ids.map(async (id) => (await read(id, apiOnly)).status));
  const sent = statuses.filter((status) => status === "sent").length;
  assert.ok(sent >= 2 && sent < 20, `${sent} sent`);
  assert.equal(statuses.filter((status) => status === "queued").length, 20 - sent);
  assert.deepEqual([body.processing, body.depth.normal], [0, 20 - sent]);
  const { rows } = await apiOnly.db.query("select distinct attempt from carillon.ready");
  assert.deepEqual(rows, [{ attempt: 0 }], "what was handed back has spent no attempt");
  await apiOnly.stop();
});

test("a send that outlasts its lease keeps it by extension", async () => {
  const slow = await startService({ roles, providers, routes, leaseMs: 1_000, sweepMs: 100, sendTimeoutMs: 10_000 });
  const id = await send("inbox", {}, slow);
  const { status, attempts } = await ended(id, slow);
  assert.deepEqual([status, attempts.length, acceptedBy(id)], ["sent", 1, 1]);
  assert.ok(attempts[0].latencyMs > 2_000);
  await slow.stop();
});

test("workers are listed with their heartbeat, and the metrics tell of sends", async () => {
  const { body } = await service.ask("GET", "/v1/workers");
  assert.equal(body.data.filter(({ alive }: { alive: boolean }) => alive).length, 1);
  assert.ok(body.data[0].name.includes(`-${process.pid}-`));
  const { body: figures } = await service.ask("GET", "/metrics");
  for (const line of [
    /notifications_sent_total\{channel="email",priority="normal",category="accepted"\} \d+/,
    /notifications_failed_total\{channel="push",priority="normal",category="rejected"\} \d+/,
    /notifications_retried_total\{channel="sms",priority="normal",category="unavailable"\} \d+/,
    /notification_queue_depth\{priority="urgent"\} 0/,
    /notification_oldest_queued_seconds \d/,
    /notification_active_workers 1/,
    /notification_queue_wait_seconds_count\{priority="normal"\} \d+/,
    /notification_provider_duration_seconds_count\{provider="good"\} \d+/,
    /notification_processing_duration_seconds_count\{channel="email"\} \d+/,
    /notification_lease_lost_total 0/,
    /notification_lease_swept_total 0/,
  ]) {
    assert.match(figures, line);
  }
});
