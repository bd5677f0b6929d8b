// What tenants are told of their notifications, from the request to the receiver.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { REQUESTS } from "#domain/endpoint.ts";
import { findEndpoint, setEndpointState } from "#store/endpoints.ts";
import { storeItems } from "#store/inbox.ts";
import { type CallbackReceiver, type Posted, startReceiver } from "../support/callback-receiver.ts";
import { makeEndpoint, SECRET_KEYS, secretOf } from "../support/endpoint.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
let receiver: CallbackReceiver;
/** By path; 204 where nothing is said. */
const answers = new Map<string, number>();
before(async () => {
  receiver = await startReceiver(
    ({ path }, response) => void response.writeHead(answers.get(path) ?? 204).end("so it is"),
  );
  service = await startService({
    roles: ["api", "worker", "scheduler", "keeper"],
    secretKeys: SECRET_KEYS,
    allowAddresses: ["127.0.0.1"],
    sweepMs: 200,
    routes: {
      email: "console",
      push: "console",
      sms: "console",
      slack: "console",
      webhook: "console",
      inbox: "console",
      console: "console",
      file: "console",
    },
  });
});
after(async () => {
  await service.stop();
  receiver.close();
});

const send = async (more: object = {}, key = service.key): Promise<string> => {
  const request = { channel: "console", content: { body: "hello" }, ...more };
  const { status, body } = await service.ask("POST", "/v1/notifications", request, { key });
  assert.equal(status, 202, JSON.stringify(body));
  return body.notificationId;
};
const told = (path: string, count: number): Promise<Posted[]> =>
  until(async () => (receiver.at(path).length >= count ? receiver.at(path) : undefined));
const callbacksOf = async (endpoint: string) => {
  const { rows } = await service.db.query(
    "select status, request -> 'callback' ->> 'type' as type, id from carillon.records where tenant = -1 and user_id = $1 order by seq",
    [endpoint],
  );
  return rows;
};
const statusesOf = (endpoint: string, status: string, count: number) =>
  until(async () => {
    const found = (await callbacksOf(endpoint)).filter((one) => one.status === status);
    return found.length === count ? found : undefined;
  });

test("a request that names a callbackUrl is told that it was sent, signed for any library", async () => {
  const id = await send({ callbackUrl: `${receiver.url}/asked`, metadata: { order: 7 } });
  const [posted] = await told("/asked", 1);
  assert.equal(posted?.body.type, "notification.sent");
  assert.equal(posted.body.data.notificationId, id);
  assert.deepEqual(posted.body.data.metadata, { order: 7 });
  assert.equal(posted.body.data.status, "sent");
  const secret = await secretOf(service, REQUESTS);
  assert.deepEqual(new Webhook(secret).verify(posted.raw, posted.headers as { [name: string]: string }), posted.body);
  assert.match(posted.headers["webhook-signature"] as string, /^v1,\S+ v1a,\S+$/);
  await statusesOf(REQUESTS, "sent", 1);
  const { body: metrics } = await service.ask("GET", "/metrics");
  assert.match(metrics, /^webhooks_delivered_total\{success="true"\} 1$/m);
});

test("an endpoint that asks for it is told that an item was read", async () => {
  await makeEndpoint(service, { url: `${receiver.url}/reads`, events: ["read"] });
  const id = await send({ channel: "inbox", recipient: { userId: "ada" } });
  await storeItems(service.db, [
    { id, tenant: 1, userId: "ada", title: "Hello", body: null, category: null, data: null, link: null },
  ]);
  await service.ask("POST", "/v1/inbox/ada/read", { ids: [id] });
  const [posted] = await told("/reads", 1);
  assert.equal(posted?.body.type, "notification.read");
  const { notificationId, channel, userId, status } = posted.body.data;
  assert.deepEqual([notificationId, channel, userId, status], [id, "inbox", "ada", undefined]);
});

test("it says itself which events it is told, and those who do not ask are told nothing", async () => {
  await send();
  const id = await send({ callbackUrl: `${receiver.url}/chosen`, callbackEvents: ["accepted"] });
  const [posted] = await told("/chosen", 1);
  assert.equal(posted?.body.type, "notification.accepted");
  assert.equal(posted.body.data.notificationId, id);
  await send({ callbackUrl: `${receiver.url}/after` });
  await told("/after", 1);
  assert.equal(receiver.at("/chosen").length, 1);
});

test("what is said of callbacks without a URL is refused, over HTTP and in SQL", async () => {
  const request = { channel: "console", content: {}, callbackPolicy: "aggressive", callbackEvents: ["sent"] };
  const { status, body } = await service.ask("POST", "/v1/notifications", request);
  assert.equal(status, 422);
  assert.deepEqual(
    body.errors.map(({ path, message }: { path: string; message: string }) => `${path} ${message}`),
    ["/callbackPolicy needs callbackUrl", "/callbackEvents needs callbackUrl"],
  );
  await assert.rejects(service.db.query("select carillon.send($1)", [request]), /callbackPolicy needs callbackUrl/);
});

test("what was sent by SQL is called back too", async () => {
  const request = { channel: "console", content: {}, callbackUrl: `${receiver.url}/sql` };
  const { rows } = await service.db.query("select carillon.send($1) as id", [request]);
  const [posted] = await told("/sql", 1);
  assert.equal(posted?.body.data.notificationId, rows[0].id);
});

test("an endpoint is told what it asked for, with the answer kept", async () => {
  const endpoint = await makeEndpoint(service, { url: `${receiver.url}/endpoint`, events: ["sent"] });
  await send();
  await told("/endpoint", 1);
  const [{ id }] = await statusesOf(endpoint, "sent", 1);
  const { rows } = await service.db.query("select detail from carillon.events where notification_id = $1", [id]);
  assert.deepEqual(rows[0].detail.answer, { status: 204, body: "" });
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
});

test("a callback makes no facts of its own", async () => {
  const { rows } = await service.db.query("select count(*)::int as n from carillon.feed where -1 = any (tenants)");
  assert.equal(rows[0].n, 0);
  const { data } = await ask(service, "/v1/notifications?limit=100");
  assert.ok(data.every(({ channel }: { channel: string }) => channel !== "callback"));
});

test("400 ends it, 500 does not; both are attempts", async () => {
  answers.set("/refuses", 400).set("/stumbles", 500);
  const refuses = await makeEndpoint(service, { url: `${receiver.url}/refuses`, events: ["sent"] });
  const stumbles = await makeEndpoint(service, { url: `${receiver.url}/stumbles`, events: ["sent"] });
  await send();
  await statusesOf(refuses, "failed", 1);
  await statusesOf(stumbles, "pending", 1);
  const { rows } = await service.db.query(
    "select date_part('epoch', due_at - carillon.now()) as s from carillon.later where id = $1",
    [(await callbacksOf(stumbles))[0].id],
  );
  assert.ok(rows[0].s > 5 && rows[0].s <= 30, `${rows[0].s} s`);
  await service.db.query("delete from carillon.endpoints where id = any ($1)", [[refuses, stumbles]]);
});

test("410 disables the endpoint, and the others are told", async () => {
  answers.set("/gone", 410);
  const gone = await makeEndpoint(service, { url: `${receiver.url}/gone`, events: ["sent"] });
  const other = await makeEndpoint(service, { url: `${receiver.url}/other`, events: ["cancelled"] });
  await send();
  const [posted] = await told("/other", 1);
  assert.equal(posted?.body.type, "endpoint.disabled");
  assert.equal(posted.body.data.endpointId, gone);
  const row = await findEndpoint(service.db, 1, gone);
  assert.deepEqual([row?.state, row?.reason], ["disabled", "the receiver answered 410"]);
  const { body: lines } = await service.ask("GET", `/v1/audit?object=endpoint:${gone}`);
  assert.deepEqual([lines.data[0].action, lines.data[0].actor.kind], ["endpoint.disable", "process"]);
  await service.db.query("delete from carillon.endpoints where id = any ($1)", [[gone, other]]);
});

test("five days without a success disable an endpoint, unless it is persistent", async () => {
  answers.set("/failing", 503).set("/persisting", 503);
  const failing = await makeEndpoint(service, { url: `${receiver.url}/failing`, events: ["sent"] });
  const persisting = await makeEndpoint(service, {
    url: `${receiver.url}/persisting`,
    events: ["sent"],
    policy: "persistent",
  });
  await service.db.query(
    "update carillon.endpoints set failing_since = carillon.now() - interval '6 days' where id = any ($1)",
    [[failing, persisting]],
  );
  await send();
  await until(async () => ((await findEndpoint(service.db, 1, failing))?.state === "disabled" ? true : undefined));
  await told("/persisting", 1);
  assert.equal((await findEndpoint(service.db, 1, persisting))?.state, "active");
  await service.db.query("delete from carillon.endpoints where id = any ($1)", [[failing, persisting]]);
});

test("a persistent one whose time is over is a dead letter", async () => {
  const url = `${receiver.url}/persists`;
  answers.set("/persists", 503);
  const endpoint = await makeEndpoint(service, { url, events: ["sent"], policy: "persistent" });
  await send();
  const [{ id }] = await statusesOf(endpoint, "pending", 1);
  await service.db.query(
    `update carillon.notifications set request = jsonb_set(request::jsonb, '{callback,until}', to_jsonb(carillon.now()))::json
     where tenant = -1 and id = $1`,
    [id],
  );
  await service.db.query("update carillon.later set due_at = carillon.now() where id = $1", [id]);
  await statusesOf(endpoint, "failed", 1);
  assert.equal(receiver.at("/persists").length, 1);
  const { data } = await ask(service, `/v1/callback-dead-letters?endpoint=${endpoint}`);
  assert.deepEqual(
    data.map((letter: { id: string; error: string }) => [letter.id, letter.error]),
    [[id, "what it tells of is no longer kept"]],
  );
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
});

test("of a paused endpoint callbacks wait, of a deleted one they end", async () => {
  const endpoint = await makeEndpoint(service, { url: `${receiver.url}/paused`, events: ["sent"] });
  await setEndpointState(service.db, { tenant: 1, id: endpoint }, "paused", "a test");
  await send();
  const [{ id }] = await statusesOf(endpoint, "pending", 1);
  assert.equal(receiver.at("/paused").length, 0);
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
  await service.db.query("update carillon.later set due_at = carillon.now() where id = $1", [id]);
  await statusesOf(endpoint, "failed", 1);
  assert.equal(receiver.at("/paused").length, 0);
});

test("what waits for a paused endpoint goes as soon as it is resumed", async () => {
  const endpoint = await makeEndpoint(service, { url: `${receiver.url}/resumed`, events: ["sent"] });
  assert.equal((await service.ask("POST", `/v1/endpoints/${endpoint}/pause`, { reason: "a test" })).status, 200);
  await send();
  await statusesOf(endpoint, "pending", 1);
  assert.equal((await service.ask("POST", `/v1/endpoints/${endpoint}/resume`)).status, 200);
  await told("/resumed", 1);
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
});

test("health and figures say how far callbacks are behind", async () => {
  const { checks } = (await service.ask("GET", "/health", undefined, { key: null })).body;
  assert.equal(checks.find(({ name }: { name: string }) => name === "callbacks").detail, "up to date");
  const { body } = await service.ask("GET", "/metrics");
  assert.match(body, /^webhooks_lag_seconds \d/m);
});
