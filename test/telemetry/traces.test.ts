// Traces as an operator gets them: a real SDK, loaded by --import into a real process, and a receiver of what it exports.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { type Exported, startOtlp } from "../support/otlp.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type Sandbox, type ServiceProcess, sandboxFor, type Variables } from "../support/process.ts";
import type { StandIn } from "../support/scripted.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const SDK = pathToFileURL(join(import.meta.dirname, "..", "support", "otel.ts")).href;
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const WEB_REQUEST = "00f067aa0ba902b7";
const PARENT = `00-${TRACE_ID}-${WEB_REQUEST}-01`;
const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });

type Scene = {
  otlp: Awaited<ReturnType<typeof startOtlp>>;
  receiver: StandIn;
  sandbox: Sandbox;
  carillon: ServiceProcess;
};

async function setUp(t: TestContext, env: Variables = {}): Promise<Scene> {
  const otlp = await startOtlp();
  const receiver = await startStandIn();
  receiver.answer(() => ({ status: 202, headers: { "x-message-id": "sg-1" } }));
  const database = await freshDatabase();
  const sandbox = await sandboxFor(t);
  // After the sandbox's own: its processes have ended by then.
  t.after(() => Promise.all([otlp.close(), receiver.close(), database.drop()]));
  const webhookPublicKey = keys.publicKey.export({ type: "spki", format: "der" }).toString("base64");
  const mail = { type: "sendgrid", from: "bell@example.com", apiKey: "SG.key", apiUrl: receiver.url, webhookPublicKey };
  const config = {
    providers: { mail, hooks: { type: "webhook" } },
    routes: { email: "mail", webhook: "hooks" },
    allowAddresses: ["127.0.0.0/8"],
  };
  writeFileSync(join(sandbox.directory, "carillon.config.json"), JSON.stringify(config));
  const carillon = await sandbox.start({
    DATABASE_URL: database.url,
    NODE_OPTIONS: `--import ${SDK}`,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: otlp.endpoint,
    CARILLON_SECRET_KEYS: Buffer.alloc(32, 7).toString("base64"),
    ...env,
  });
  return { otlp, receiver, sandbox, carillon };
}

const webhookTo = ({ url }: StandIn, body = "Ding") => ({
  channel: "webhook",
  recipient: { webhookUrl: `${url}/in` },
  content: { body },
});

test("one trace leads from a web request to its delivery report, and to those who are called back", async (t) => {
  const { otlp, receiver, carillon } = await setUp(t);
  const content = { subject: "Hello {{ name }}", textBody: "Hello {{ name }}" };
  const put = await carillon.ask("PUT", "/v1/templates/hello", { name: "Hello", channel: "email", content });
  assert.ok(put.status < 300, JSON.stringify(put.body));
  const request = {
    channel: "email",
    recipient: { email: "ada@example.com" },
    content: { templateId: "hello", variables: { name: "Ada" } },
    callbackUrl: `${receiver.url}/told`,
  };
  const { body } = await carillon.ask("POST", "/v1/notifications", request, { headers: { traceparent: PARENT } });
  const steps = ["accept", "wait", "deliver", "claim", "render", "guard", "send", "settle"].map(
    (step) => `${step} email`,
  );
  await otlp.trace(TRACE_ID, steps);

  const raw = JSON.stringify([
    {
      event: "delivered",
      sg_message_id: "sg-1.filter",
      sg_event_id: "d-1",
      email: "ada@example.com",
      timestamp: 1_790_000_000,
    },
  ]);
  const at = String(Math.floor(Date.now() / 1000));
  const headers = {
    "x-twilio-email-event-webhook-timestamp": at,
    "x-twilio-email-event-webhook-signature": sign("sha256", Buffer.from(at + raw), keys.privateKey).toString("base64"),
  };
  for (const _ of ["once", "and again"]) {
    const told = await carillon.ask("POST", "/v1/providers/mail/events", undefined, { key: null, raw, headers });
    assert.equal(told.status, 200, JSON.stringify(told.body));
  }
  const told = ["callback notification.sent", "callback notification.delivered"];
  const spans = await otlp.trace(TRACE_ID, [...steps, "delivered email", ...told]);
  const parentOf = (name: string) => spans.get(name)?.parentSpanId;
  const accept = spans.get("accept email");
  const deliver = spans.get("deliver email");
  assert.equal(accept?.parentSpanId, WEB_REQUEST);
  for (const name of ["wait email", "deliver email", "delivered email", ...told])
    assert.equal(parentOf(name), accept?.spanId, name);
  for (const step of ["claim", "render", "guard", "send", "settle"]) {
    assert.equal(parentOf(`${step} email`), deliver?.spanId, step);
  }
  inOrder(["accept", "wait", "claim", "render", "guard", "send", "settle"].map((step) => spans.get(`${step} email`)));

  for (const name of told) calledBack(spans.get(name), otlp.spans(), receiver, body.notificationId);

  // Of claim and settle, each of which served all that it took.
  const shared = otlp.spans().filter(({ name }) => name.endsWith(" batch"));
  for (const step of ["claim", "settle"]) {
    const one = spans.get(`${step} email`);
    const batch = shared.find(
      ({ name, links }) => name === `${step} batch` && links.some(({ spanId }) => spanId === one?.spanId),
    );
    assert.deepEqual(one?.links, [{ traceId: batch?.traceId, spanId: batch?.spanId }]);
    assert.notEqual(batch?.traceId, TRACE_ID);
    assert.equal(batch?.attributes["messaging.batch.message_count"], 1);
  }

  assert.deepEqual(spans.get("send email")?.attributes, {
    "messaging.system.name": "carillon",
    "messaging.operation.name": "send",
    "messaging.operation.type": "send",
    "messaging.destination.name": "email",
    "messaging.message.id": body.notificationId,
    "carillon.provider": "mail",
    "carillon.outcome": "accepted",
  });
  assert.equal(deliver?.attributes["carillon.status"], "sent");
  assert.deepEqual(otlp.schemas(), ["https://opentelemetry.io/schemas/1.45.0"]);
  assert.doesNotMatch(JSON.stringify(otlp.spans()), /@|hello|told/i);
  assert.equal(otlp.spans().filter(({ name }) => name === "delivered email").length, 1);

  const record = (await carillon.ask("GET", `/v1/notifications/${body.notificationId}`)).body;
  assert.equal(record.status, "delivered");
  assert.equal(record.traceId, TRACE_ID);
  assert.equal("trace" in record, false);
});

/** Its steps are below it, and its receiver goes on in the send. */
function calledBack(
  callback: Exported | undefined,
  spans: Exported[],
  receiver: StandIn,
  notificationId: string,
): void {
  const { attributes = {}, spanId } = callback ?? {};
  const type = attributes["carillon.event"];
  assert.equal(callback?.name, `callback ${type}`);
  assert.equal(attributes["messaging.message.conversation_id"], notificationId);
  assert.equal(attributes["carillon.endpoint"], "requests");
  assert.equal(attributes["carillon.outcome"], "accepted");
  const below = spans.filter(({ parentSpanId }) => parentSpanId === spanId);
  assert.deepEqual(below.map(({ name }) => name).sort(), [
    "claim callback",
    "guard callback",
    "send callback",
    "settle callback",
  ]);
  const send = below.find(({ name }) => name === "send callback");
  const posted = receiver.received.filter(({ path, body }) => path === "/told" && JSON.parse(body).type === type);
  assert.deepEqual(
    posted.map(({ headers }) => headers.traceparent),
    [`00-${TRACE_ID}-${send?.spanId}-01`],
  );
}

function inOrder(spans: readonly (Exported | undefined)[]): void {
  const starts = spans.map((span) => span?.startMs ?? Number.NaN);
  const claim = spans.find((span) => span?.name.startsWith("claim "));
  // Some are the database's clock, the others that of a process. How long it waited ends when the database looks, which is some time during the claim.
  const slack = 50 + (claim ? claim.endMs - claim.startMs : 0);
  for (const [n, start] of starts.entries())
    if (n > 0)
      assert.ok(start >= (starts[n - 1] as number) - slack, `${spans[n - 1]?.name} begins before ${spans[n]?.name}`);
}

test("the receiver of a webhook goes on in the send's span, and a failed attempt is one in its trace and in the log", async (t) => {
  const { otlp, receiver, carillon } = await setUp(t);
  let calls = 0;
  receiver.answer(() => ({ status: ++calls === 1 ? 200 : 400 }));
  const headers = { traceparent: PARENT, tracestate: "vendor=1" };
  await carillon.ask("POST", "/v1/notifications", webhookTo(receiver), { headers });
  const spans = await otlp.trace(TRACE_ID, ["settle webhook"]);
  const [got] = receiver.received;
  assert.equal(got?.headers.traceparent, `00-${TRACE_ID}-${spans.get("send webhook")?.spanId}-01`);
  assert.equal(got?.headers.tracestate, "vendor=1");

  const { body } = await carillon.ask("POST", "/v1/notifications", webhookTo(receiver));
  const { traceId } = (await carillon.ask("GET", `/v1/notifications/${body.notificationId}`)).body;
  const failed = await otlp.trace(traceId, ["deliver webhook", "send webhook"]);
  assert.equal(failed.get("send webhook")?.isError, true);
  assert.equal(failed.get("send webhook")?.attributes["error.type"], "400");
  assert.equal(failed.get("deliver webhook")?.isError, true);
  const [line] = await carillon.says(/^\{.*"msg":"attempt".*\}$/m);
  assert.equal(JSON.parse(line).traceId, traceId);
});

test("a stranger's trace is linked to, and neither continued nor allowed to say what is recorded", async (t) => {
  const { otlp, receiver, carillon } = await setUp(t);
  const key = await strangerOf(carillon);
  // Not sampled, says the stranger; our sampler has another mind.
  const given = `${PARENT.slice(0, -2)}00`;
  const request = { ...webhookTo(receiver), callbackUrl: `${receiver.url}/told` };
  const headers = { traceparent: given, tracestate: "ot=th:0" };
  const { body } = await carillon.ask("POST", "/v1/notifications", request, { key, headers });
  const accept = await until(async () => otlp.spans().find(({ name }) => name === "accept webhook"));
  assert.notEqual(accept.traceId, TRACE_ID);
  assert.equal(accept.parentSpanId, undefined);
  assert.deepEqual(accept.links, [{ traceId: TRACE_ID, spanId: WEB_REQUEST }]);
  await otlp.trace(accept.traceId, ["wait webhook", "deliver webhook", "send webhook", "callback notification.sent"]);
  assert.deepEqual(
    otlp.spans().filter(({ traceId }) => traceId === TRACE_ID),
    [],
  );
  assert.deepEqual(
    receiver.received.map(({ path, headers: got }) => [path, got.traceparent, got.tracestate]),
    [
      ["/in", given, "ot=th:0"],
      ["/told", given, "ot=th:0"],
    ],
    "its own trace goes on at its own receivers",
  );
  assert.deepEqual(new Set(otlp.spans().map(({ traceState }) => traceState)), new Set([undefined]));
  const record = (await carillon.ask("GET", `/v1/notifications/${body.notificationId}`, undefined, { key })).body;
  assert.deepEqual([record.traceId, record.traceparent], [accept.traceId, given]);
});

test("what the operator's sampler leaves out leaves nothing behind, whatever a stranger's flag says", async (t) => {
  const { otlp, receiver, carillon } = await setUp(t, { SAMPLED_ROOTS: "none" });
  const key = await strangerOf(carillon);
  const ask = (who: object) => carillon.ask("POST", "/v1/notifications", webhookTo(receiver), who);
  const stranger = await ask({ key, headers: { traceparent: PARENT } });
  await ask({});
  await receiver.arrived(2);
  const read = (await carillon.ask("GET", `/v1/notifications/${stranger.body.notificationId}`, undefined, { key }))
    .body;
  assert.equal(read.traceId, TRACE_ID);
  // Whoever is trusted says that it is recorded: all before it would have been exported by then.
  const ours = PARENT.replace(TRACE_ID, "a".repeat(32));
  await ask({ headers: { traceparent: ours } });
  await otlp.trace("a".repeat(32), ["deliver webhook"]);
  const traces = new Set(otlp.spans().map(({ traceId }) => traceId));
  assert.deepEqual([...traces], ["a".repeat(32)]);
});

test("of what is recorded last nothing is lost when a process is asked to stop", async (t) => {
  const { otlp, receiver, carillon } = await setUp(t, { EXPORTED_EVERY_MS: "600000", CARILLON_TRACE_PARENTS: "none" });
  await carillon.ask("POST", "/v1/notifications", webhookTo(receiver), { headers: { traceparent: PARENT } });
  await receiver.arrived(1);
  assert.deepEqual(otlp.spans(), []);
  assert.equal((await carillon.end("SIGTERM")).code, 0);
  const names = otlp.spans().map(({ name }) => name);
  for (const name of ["accept webhook", "send webhook", "settle batch"])
    assert.ok(names.includes(name), `${name}: ${names}`);
  assert.deepEqual(
    otlp.spans().filter(({ traceId }) => traceId === TRACE_ID),
    [],
    "nobody is trusted",
  );
});

async function strangerOf({ ask }: ServiceProcess): Promise<string> {
  const { status, body } = await ask("POST", "/v1/keys", {
    name: "a stranger's",
    tenant: "stranger",
    scopes: ["send", "read"],
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body.key;
}
