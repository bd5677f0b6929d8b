// The trace that a notification is part of: taken from whoever sends it, kept, shown, and handed to receivers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import { SECRET_KEYS } from "../support/endpoint.ts";
import type { StandIn } from "../support/scripted.ts";
import { type AskOptions, email, type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
const OTHER = `00-${"a".repeat(32)}-${"b".repeat(16)}-00`;

let receiver: StandIn;
let sendgrid: StandIn;
let service: Service;
before(async () => {
  receiver = await startStandIn();
  sendgrid = await startStandIn();
  receiver.answer(() => ({ status: 200 }));
  sendgrid.answer(() => ({ status: 202 }));
  service = await startService({
    roles: ["api", "worker"],
    providers: {
      mail: { type: "sendgrid", from: "bell@example.com", apiKey: "SG.key", apiUrl: sendgrid.url },
      hooks: { type: "webhook" },
    },
    routes: { email: "mail", webhook: "hooks" } as Config["routes"],
    allowAddresses: ["127.0.0.0/8"],
    secretKeys: SECRET_KEYS,
  });
});
after(async () => {
  await service.stop();
  await receiver.close();
  await sendgrid.close();
});

const webhook = (body: string) => ({
  channel: "webhook",
  recipient: { webhookUrl: `${receiver.url}/in` },
  content: { body },
});
const send = (request: object, headers: AskOptions["headers"] = {}) =>
  service.ask("POST", "/v1/notifications", request, { headers });
const read = async (id: string) => (await service.ask("GET", `/v1/notifications/${id}`)).body;
const receivedBy = (one: StandIn, words: string) =>
  until(async () => one.received.find(({ body }) => body.includes(words)));

test("the trace of the request that sent it is in its record, and its receiver goes on with it", async () => {
  const { status, body } = await send(webhook("of a trace"), { traceparent: PARENT, tracestate: "vendor=1" });
  assert.equal(status, 202);
  const { traceId, traceparent, tracestate } = await read(body.notificationId);
  assert.deepEqual(
    { traceId, traceparent, tracestate },
    { traceId: TRACE_ID, traceparent: PARENT, tracestate: "vendor=1" },
  );
  const { headers } = await receivedBy(receiver, "of a trace");
  assert.deepEqual([headers.traceparent, headers.tracestate], [PARENT, "vendor=1"]);
});

test("who is called back about it goes on with its trace, too", async () => {
  const request = { ...email(), callbackUrl: `${receiver.url}/told`, callbackEvents: ["accepted"] };
  const posted = async ({ body }: { body: { notificationId: string } }) =>
    (await receivedBy(receiver, body.notificationId)).headers;
  const headers = await posted(await send(request, { traceparent: PARENT, tracestate: "vendor=1" }));
  assert.deepEqual([headers.traceparent, headers.tracestate], [PARENT, "vendor=1"]);
  const without = await posted(await send({ ...request, tracestate: "vendor=1" }));
  assert.deepEqual([without.traceparent, without.tracestate], [undefined, undefined]);
});

test("what is part of no trace says so nowhere", async () => {
  const { body } = await send(webhook("of none"));
  const record = await read(body.notificationId);
  assert.deepEqual(
    Object.keys(record).filter((name) => name.startsWith("trace")),
    [],
  );
  assert.equal((await receivedBy(receiver, "of none")).headers.traceparent, undefined);
});

test("mail says nothing of traces", async () => {
  await send({ ...email("of a trace"), content: { subject: "untold", textBody: "-" } }, { traceparent: PARENT });
  const { body, headers } = await receivedBy(sendgrid, "untold");
  assert.doesNotMatch(JSON.stringify({ body, headers }), new RegExp(`${TRACE_ID}|traceparent`));
});

test("a header that is no trace context is nobody's fault, and is not kept", async () => {
  const nonsense = [
    "",
    "nonsense",
    PARENT.toUpperCase(),
    `ff${PARENT.slice(2)}`,
    `${PARENT}-more`,
    `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    `00-${TRACE_ID}-${"0".repeat(16)}-01`,
    `01-${TRACE_ID}-00f067aa0ba902b7-01-${"x".repeat(10_000)}`,
    `${PARENT}, ${PARENT}`,
  ];
  for (const traceparent of nonsense) {
    const { status, body } = await send(email(), { traceparent, tracestate: "vendor=1" });
    assert.equal(status, 202, traceparent);
    const record = await read(body.notificationId);
    assert.deepEqual([record.traceparent, record.tracestate, record.traceId], [undefined, undefined, undefined]);
  }
});

test("a later version of the header is read as far as it is known, and a state that is too long is left out", async () => {
  const { body } = await send(email(), {
    traceparent: `cc${PARENT.slice(2)}-what-comes`,
    tracestate: "v=".padEnd(600, "1"),
  });
  const { traceparent, tracestate } = await read(body.notificationId);
  assert.deepEqual([traceparent, tracestate], [PARENT, undefined]);
});

test("in the body it is part of the request: refused where it is wrong, and before the header's", async () => {
  const { status, body } = await send({ ...email(), traceparent: "nonsense", tracestate: "a\nb" });
  assert.equal(status, 422);
  assert.deepEqual(body.errors.map(({ path }: { path: string }) => path).sort(), ["/traceparent", "/tracestate"]);
  const own = await send({ ...email(), traceparent: OTHER }, { traceparent: PARENT, tracestate: "vendor=1" });
  const { traceparent, tracestate } = await read(own.body.notificationId);
  assert.deepEqual([traceparent, tracestate], [OTHER, undefined]);
});

test("a trace or a span of zeros is nobody's: no receiver is told of it", async () => {
  const { status, body } = await send({
    ...webhook("of zeros"),
    traceparent: PARENT.replace(TRACE_ID, "0".repeat(32)),
  });
  assert.equal(status, 202);
  assert.equal((await read(body.notificationId)).traceId, undefined);
  assert.equal((await receivedBy(receiver, "of zeros")).headers.traceparent, undefined);
});

test("the context of a batch is that of each that brings none", async () => {
  const requests = [email(1), { ...email(2), traceparent: OTHER }, "no request"];
  const { body } = await service.ask(
    "POST",
    "/v1/notifications/batch",
    { notifications: requests },
    { headers: { traceparent: PARENT } },
  );
  const [first, second, third] = body.results;
  assert.equal((await read(first.notificationId)).traceparent, PARENT);
  assert.equal((await read(second.notificationId)).traceparent, OTHER);
  assert.equal(third.error.code, "VALIDATION_FAILED");
});

test("whoever asks again from another span means the same notification", async () => {
  const request = { ...email(), idempotencyKey: "again" };
  const first = await send(request, { traceparent: PARENT });
  const again = await send(request, { traceparent: OTHER, tracestate: "vendor=1" });
  const untraced = await send(request);
  assert.deepEqual([first.status, again.status, untraced.status], [202, 200, 200]);
  assert.equal(again.body.notificationId, first.body.notificationId);
  assert.equal((await read(first.body.notificationId)).traceparent, PARENT);
});

test("it can be given in SQL too; what we keep of our own nobody can give", async () => {
  const { rows } = await service.db.query("select carillon.send($1) as id", [{ ...email(), traceparent: PARENT }]);
  assert.equal((await read(rows[0].id)).traceId, TRACE_ID);
  await assert.rejects(service.db.query("select carillon.send($1)", [{ ...email(), trace: PARENT }]), /trace/);
  const { status, body } = await send({ ...email(), trace: PARENT });
  assert.equal(status, 422);
  assert.deepEqual(body.errors, [{ path: "/trace", message: "is not a known field" }]);
});
