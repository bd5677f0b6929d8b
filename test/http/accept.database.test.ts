// Accepting over HTTP: what is answered, what is stored, what is refused.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { email, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const send = (body: unknown, headers?: { [name: string]: string }) =>
  service.ask("POST", "/v1/notifications", body, headers ? { headers } : {});
const count = async (table: string, where = "true", values: unknown[] = []) =>
  Number((await service.db.query(`select count(*) as n from carillon.${table} where ${where}`, values)).rows[0].n);

test("a notification is answered 202 with its id and is there when read back", async () => {
  const request = {
    ...email(),
    priority: "high",
    recipient: { userId: "u_17", email: "ada@example.com", locale: "fr", timezone: "Europe/Paris" },
    metadata: { orderId: "17", nested: { list: [1, "two", null, true] } },
  };
  const { status, body } = await send(request);
  assert.equal(status, 202);
  assert.match(body.notificationId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(body.status, "queued");
  assert.equal(body.channel, "email");
  assert.equal(body.priority, "high");
  assert.match(body.enqueuedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

  const read = await service.ask("GET", `/v1/notifications/${body.notificationId}`);
  assert.equal(read.status, 200);
  const { notificationId, enqueuedAt, status: now, attempts, events, ...rest } = read.body;
  assert.deepEqual(rest, request);
  assert.deepEqual([notificationId, enqueuedAt, now], [body.notificationId, body.enqueuedAt, "queued"]);
  assert.deepEqual(attempts, []);
  assert.deepEqual(events, [{ type: "accepted", at: enqueuedAt, to: "queued" }]);
});

test("a notification for later is pending and waits in the schedule, one for the past is due at once", async () => {
  const later = await send({ ...email(), scheduledFor: "2099-01-01T09:00:00+01:00" });
  assert.equal(later.status, 202);
  assert.deepEqual([later.body.status, later.body.scheduledFor], ["pending", "2099-01-01T08:00:00.000Z"]);
  assert.equal(await count("schedule", "id = $1", [later.body.notificationId]), 1);
  assert.equal(await count("ready", "id = $1", [later.body.notificationId]), 0);

  const past = await send({ ...email(), scheduledFor: "2020-01-01T00:00:00Z" });
  assert.equal(past.body.status, "queued");
  assert.equal(await count("ready", "id = $1", [past.body.notificationId]), 1);
});

test("every fault of a request is listed, and nothing is stored", async () => {
  const before = await count("notifications");
  const { status, headers, body } = await send({
    channel: "email",
    recipient: { email: "not an address", colour: "red" },
    content: { badge: 1.5, attachments: [{ filename: "a/b", contentType: "x", content: "!" }] },
    priority: "asap",
    scheduledFor: "tomorrow",
    expiresAt: "2099-02-30T00:00:00Z",
    retryPolicy: { maxAttempts: 0 },
    extra: 1,
  });
  assert.equal(status, 422);
  assert.match(headers.get("content-type") ?? "", /^application\/problem\+json/);
  assert.equal(body.code, "VALIDATION_FAILED");
  const faults = Object.fromEntries(
    body.errors.map(({ path, message }: { path: string; message: string }) => [path, message]),
  );
  assert.deepEqual(Object.keys(faults).sort(), [
    "/content/attachments/0/content",
    "/content/attachments/0/contentType",
    "/content/attachments/0/filename",
    "/content/badge",
    "/content/subject",
    "/content/textBody",
    "/expiresAt",
    "/extra",
    "/priority",
    "/recipient/colour",
    "/recipient/email",
    "/retryPolicy/maxAttempts",
    "/scheduledFor",
  ]);
  assert.equal(faults["/extra"], "is not a known field");
  assert.equal(faults["/expiresAt"], "must be a day that exists");
  assert.equal(await count("notifications"), before);
});

const minimal = {
  email: { recipient: { email: "a@b.co" }, content: { subject: "s", htmlBody: "<p>x</p>" } },
  push: { recipient: { deviceTokens: ["t"] }, content: { title: "t" } },
  sms: { recipient: { phone: "+33612345678" }, content: { body: "b" } },
  slack: { recipient: { slackChannel: "C024BE91L" }, content: { body: "b" } },
  webhook: { recipient: { webhookUrl: "https://example.com/hook" }, content: { data: { a: 1 } } },
  inbox: { recipient: { userId: "u" }, content: { body: "b" } },
  console: { content: { body: "b" } },
  file: { content: { body: "b" } },
};
for (const [channel, request] of Object.entries(minimal)) {
  test(`${channel} takes what it needs and says what is missing`, async () => {
    assert.equal((await send({ channel, ...request })).status, 202);
    assert.equal(
      (await send({ channel, ...request, content: { templateId: "welcome", templateVersion: 1 } })).status,
      202,
    );
    const { status, body } = await send({ channel, content: {} });
    if (channel === "console" || channel === "file") return assert.equal(status, 202);
    assert.equal(status, 422);
    const paths = body.errors.map(({ path }: { path: string }) => path.split("/")[1]);
    assert.ok(paths.includes("recipient") && paths.includes("content"), JSON.stringify(body.errors));
  });
}

test("a line break cannot be smuggled into a header, nor a path into a file name", async () => {
  const base = email();
  for (const content of [
    { ...base.content, subject: "Hi\r\nBcc: all@example.com" },
    { ...base.content, attachments: [{ filename: "../../etc/passwd", contentType: "text/plain", content: "aGk=" }] },
  ]) {
    assert.equal((await send({ ...base, content })).status, 422);
  }
  assert.equal((await send({ ...base, recipient: { email: "a@b.co\nBcc:x@y.zz" } })).status, 422);
});

test("what expires before it could be sent is refused", async () => {
  const expired = await send({ ...email(), expiresAt: "2020-01-01T00:00:00Z" });
  assert.deepEqual(expired.body.errors, [{ path: "/expiresAt", message: "must be in the future" }]);
  const unsent = await send({ ...email(), scheduledFor: "2099-01-02T00:00:00Z", expiresAt: "2099-01-01T00:00:00Z" });
  assert.deepEqual(unsent.body.errors, [{ path: "/expiresAt", message: "must be after scheduledFor" }]);
});

test("the same idempotency key and body give the same notification, in any order of fields", async () => {
  const first = await send({ ...email(), metadata: { a: 1, b: 2 }, idempotencyKey: "order-17" });
  assert.equal(first.status, 202);
  assert.equal(first.headers.get("idempotent-replayed"), null);
  const again = await send({ idempotencyKey: "order-17", metadata: { b: 2, a: 1 }, ...email() });
  assert.equal(again.status, 200);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.deepEqual(again.body, first.body);
  const byHeader = await send({ ...email(), metadata: { a: 1, b: 2 } }, { "idempotency-key": "order-17" });
  assert.deepEqual([byHeader.status, byHeader.body], [200, first.body]);
});

test("the same idempotency key with another body is a conflict and stores nothing", async () => {
  await send({ ...email(1), idempotencyKey: "order-18" });
  const before = await count("notifications");
  const { status, body } = await send({ ...email(2), idempotencyKey: "order-18" });
  assert.deepEqual([status, body.code], [409, "IDEMPOTENCY_MISMATCH"]);
  assert.equal(await count("notifications"), before);
});

test("a key in the header and another in the body is refused", async () => {
  const { status, body } = await send({ ...email(), idempotencyKey: "a" }, { "idempotency-key": "b" });
  assert.deepEqual([status, body.errors[0].path], [422, "/idempotencyKey"]);
});

test("an idempotency key works again after its time is over", async () => {
  const first = await send({ ...email(1), idempotencyKey: "old" });
  await service.db.query("update carillon.idempotency set expires_at = now() - interval '1 s' where key = 'old'");
  const second = await send({ ...email(2), idempotencyKey: "old" });
  assert.equal(second.status, 202);
  assert.notEqual(second.body.notificationId, first.body.notificationId);
});

test("200 racing sends with one idempotency key make one notification", async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, () => send({ ...email(), idempotencyKey: "race" })));
  assert.deepEqual(new Set(answers.map(({ body }) => body.notificationId)).size, 1);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(199).fill(200), 202]);
  assert.equal(await count("notifications", "request ->> 'idempotencyKey' = 'race'"), 1);
});

test("racing sends with one key and two bodies have one winner", async () => {
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) => send({ ...email(n % 2), idempotencyKey: "duel" })),
  );
  const stored = await count("notifications", "request ->> 'idempotencyKey' = 'duel'");
  assert.equal(stored, 1);
  assert.equal(answers.filter(({ status }) => status === 202).length, 1);
  assert.equal(answers.filter(({ status }) => status === 409).length, 50);
});

test("of a batch, each notification stands or falls by itself", async () => {
  await send({ ...email(7), idempotencyKey: "used" });
  const { status, body } = await service.ask("POST", "/v1/notifications/batch", {
    notifications: [
      email(1),
      { channel: "email" },
      { ...email(2), scheduledFor: "2099-01-01T00:00:00Z" },
      "nonsense",
      { ...email(7), idempotencyKey: "used" },
      { ...email(8), idempotencyKey: "used" },
      { ...email(3), idempotencyKey: "twice" },
      { ...email(3), idempotencyKey: "twice" },
    ],
  });
  assert.equal(status, 200);
  assert.deepEqual(body.summary, { total: 8, succeeded: 5, failed: 3, pending: 1 });
  assert.deepEqual(
    body.results.map(
      (result: { index: number; status?: string; error?: { code: string } }) => result.status ?? result.error?.code,
    ),
    [
      "queued",
      "VALIDATION_FAILED",
      "pending",
      "VALIDATION_FAILED",
      "queued",
      "IDEMPOTENCY_MISMATCH",
      "queued",
      "queued",
    ],
  );
  assert.deepEqual(
    body.results.map(({ index }: { index: number }) => index),
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
  assert.equal(body.results[6].notificationId, body.results[7].notificationId);
  assert.equal(body.results[7].replayed, true);
});

test("a batch has 1 to 1000 notifications and nothing else", async () => {
  const batch = (body: unknown) => service.ask("POST", "/v1/notifications/batch", body);
  for (const body of [
    {},
    { notifications: [] },
    { notifications: Array(1001).fill(email()) },
    [email()],
    { notifications: [email()], x: 1 },
  ]) {
    assert.equal((await batch(body)).status, 422);
  }
  const { body } = await batch({ notifications: Array.from({ length: 1000 }, (_, n) => email(n)) });
  assert.equal(body.summary.succeeded, 1000);
});

test("first in, first out: the queue keeps the order of a batch and of one batch after another", async () => {
  const batch = async () => {
    const notifications = Array.from({ length: 50 }, (_, n) => ({ ...email(n), priority: "low" }));
    const { body } = await service.ask("POST", "/v1/notifications/batch", { notifications });
    return body.results.map(({ notificationId }: { notificationId: string }) => notificationId);
  };
  const ids = [...(await batch()), ...(await batch())];
  const { rows } = await service.db.query("select id from carillon.ready where id = any($1) order by priority, seq", [
    ids,
  ]);
  assert.deepEqual(
    rows.map(({ id }) => id),
    ids,
  );
});

test("a body over 256 KiB is 413, malformed JSON is 400, another media type is 415", async () => {
  const big = JSON.stringify({ ...email(), content: { subject: "s", textBody: "x".repeat(262_144) } });
  const cases: [string | Buffer, { [name: string]: string }, number, string][] = [
    [big, {}, 413, "PAYLOAD_TOO_LARGE"],
    ['{"channel":', {}, 400, "MALFORMED_JSON"],
    [Buffer.from([0x7b, 0xff, 0xfe]), {}, 400, "MALFORMED_JSON"],
    ["channel=email", { "content-type": "application/x-www-form-urlencoded" }, 415, "UNSUPPORTED_MEDIA_TYPE"],
    ["", {}, 422, "VALIDATION_FAILED"],
  ];
  for (const [raw, headers, status, code] of cases) {
    const answer = await service.ask("POST", "/v1/notifications", undefined, { raw, headers });
    assert.deepEqual([answer.status, answer.body.code], [status, code]);
  }
});

test("one notification of a batch that is too large fails alone", async () => {
  const large = { ...email(), content: { subject: "s", textBody: "é".repeat(140_000) } };
  const { body } = await service.ask("POST", "/v1/notifications/batch", { notifications: [email(1), large, email(2)] });
  assert.deepEqual(body.summary, { total: 3, succeeded: 2, failed: 1, pending: 0 });
  assert.equal(body.results[1].error.code, "PAYLOAD_TOO_LARGE");
});

test("concurrent senders share commits", async () => {
  const before = Number(
    (await service.db.query("select max(xmin::text::bigint) as x from carillon.notifications")).rows[0].x,
  );
  const answers = await Promise.all(Array.from({ length: 300 }, (_, n) => send(email(n))));
  assert.ok(answers.every(({ status }) => status === 202));
  const { rows } = await service.db.query(
    "select count(distinct xmin::text) as commits from carillon.notifications where xmin::text::bigint > $1",
    [before],
  );
  assert.ok(Number(rows[0].commits) < 150, `${rows[0].commits} commits for 300 sends`);
});
