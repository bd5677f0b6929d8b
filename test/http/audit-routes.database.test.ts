// Every route that changes something leaves a line in the audit log, and no line holds a secret, a name of somebody or an address.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { findFeedEnd } from "#record/feed-places.ts";
import { startFollower } from "#record/followers.ts";
import { ensureConnector } from "#store/connectors.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const SECRET = `planted${randomBytes(8).toString("hex")}`;
let service: Service;
before(async () => {
  const providers = { mail: { type: "sendgrid", from: "a@example.com", apiKey: "SG.deployment" } };
  service = await startService({
    providers: providers as never,
    sources: { orders: { type: "kafka", brokers: ["127.0.0.1:1"], topic: "orders" } },
    sinks: { bus: { type: "rabbitmq", url: `amqp://user:${SECRET}@127.0.0.1:1` } },
    secretKeys: [randomBytes(32)] as never,
  });
});
after(() => service.stop());

const PERSON = `ada-${randomBytes(6).toString("hex")}`;
const ADDRESS = `${PERSON}@example.com`;
const email = (scheduledFor?: string) => ({
  channel: "email",
  recipient: { email: ADDRESS, userId: PERSON },
  content: { subject: `For ${PERSON}`, textBody: SECRET },
  ...(scheduledFor && { scheduledFor }),
});
const notification = { channel: "inbox", recipient: { userId: PERSON }, content: { title: SECRET, body: SECRET } };

/** Routes that change something and are not in the audit log, and why. */
const LEFT_OUT: { [route: string]: string } = {
  "POST /v1/notifications": "a send: the record is its log",
  "POST /v1/notifications/batch": "the same",
  "POST /v1/explain": "changes nothing",
  "POST /v1/templates/{id}/preview": "changes nothing",
  "POST /v1/providers/{name}/test": "changes nothing",
  "POST /v1/endpoints/{id}/test": "changes nothing",
  "POST /v1/providers/{name}/events": "what providers report is in the record",
  "PUT /v1/users/{userId}/devices/{token}": "an application's own traffic, at every start of every device",
  "DELETE /v1/users/{userId}/devices/{token}": "the same",
  "POST /v1/inbox/{userId}/ack": "what a reader did is in the record, and with the item",
  "POST /v1/inbox/{userId}/read": "the same",
  "POST /v1/inbox/{userId}/archive": "the same",
  "POST /v1/inbox/{userId}/read-all": "the same",
  "POST /v1/inbox/{userId}/tokens": "at every visit of every reader; nothing is stored",
  "POST /v1/inbox/{userId}/session": "the same",
  "DELETE /v1/inbox/{userId}/session": "the same",
};

async function accepted(scheduledFor?: string): Promise<string> {
  return (await service.ask("POST", "/v1/notifications", email(scheduledFor))).body.notificationId;
}

async function failed(): Promise<string> {
  const id = await accepted("2099-01-01T00:00:00Z");
  await service.ask("POST", `/v1/notifications/${id}/cancel`);
  return id;
}

async function deadLetter(): Promise<void> {
  const id = await failed();
  await service.db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt)
     select $1, 1, 'attempt', 'processing', 'failed', 1`,
    [id],
  );
}

async function deadCallback(): Promise<void> {
  await service.db.query(
    `with made as (
       insert into carillon.notifications (tenant, id, seq, channel, priority, user_id, accepted_at, request)
       values (-1, carillon.new_id(), nextval('carillon.acceptance'), 'callback', 4, 'requests', carillon.now(),
         '{"channel": "callback", "content": {}, "callback": {"webhookId": "msg_1", "type": "notification.sent", "endpoint": "requests", "body": "{}"}}')
       returning id
     )
     insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt)
     select id, -1, 'attempt', 'processing', 'failed', 1 from made`,
  );
}

const endpoint = async (): Promise<string> =>
  `/v1/endpoints/${(await service.ask("GET", "/v1/endpoints")).body.data.find(({ id }: { id: string }) => id !== "requests").id}`;

const plan = async (): Promise<string> => {
  const { body } = await service.ask("POST", "/v1/plans", { kind: "requeue", filter: { userId: PERSON } });
  return `/v1/plans/${body.planId}`;
};

type Call = { path?: string; body?: unknown; cookie?: string };
const LATER = "2099-01-01T00:00:00Z";
/** What a call of each looks like, in this order: each finds what those before it have made. */
const CALLS: { [route: string]: () => Promise<Call> | Call } = {
  "PUT /v1/templates/{id}": () => ({
    path: "/v1/templates/t",
    body: { channel: "sms", name: "n", content: { body: "x".repeat(60_000) } },
  }),
  "POST /v1/templates/{id}/activate": async () => {
    await service.ask("PUT", "/v1/templates/t", { channel: "sms", name: "n", content: { body: "Hello" } });
    return { path: "/v1/templates/t/activate", body: { version: 1 } };
  },
  "DELETE /v1/templates/{id}": () => ({ path: "/v1/templates/t" }),
  "PUT /v1/suppressions/{address}": () => ({ path: `/v1/suppressions/${ADDRESS}`, body: { reason: SECRET } }),
  "DELETE /v1/suppressions/{address}": () => ({ path: `/v1/suppressions/${ADDRESS}` }),
  "PUT /v1/providers/{name}": () => ({
    path: "/v1/providers/mail",
    body: { type: "sendgrid", from: "b@example.com", apiKey: SECRET },
  }),
  "DELETE /v1/providers/{name}": () => ({ path: "/v1/providers/mail" }),
  "DELETE /v1/dev/messages/{id}": async () => {
    const { rows } = await service.db.query(
      "insert into carillon.dev_messages (tenant, notification_id, channel, message) values (1, $1, 'sms', '{}') returning id",
      ["0197b6a0-0000-7000-8000-000000000000"],
    );
    return { path: `/v1/dev/messages/${rows[0].id}` };
  },
  "DELETE /v1/dev/messages": () => ({}),
  "PATCH /v1/notifications/{id}": async () => ({
    path: `/v1/notifications/${await accepted(LATER)}`,
    body: { priority: "low" },
  }),
  "POST /v1/notifications/{id}/cancel": async () => ({ path: `/v1/notifications/${await accepted(LATER)}/cancel` }),
  "POST /v1/notifications/{id}/retry": async () => ({ path: `/v1/notifications/${await failed()}/retry` }),
  "POST /v1/plans": () => ({ body: { kind: "requeue", filter: { userId: PERSON, error: SECRET } } }),
  "POST /v1/plans/{id}/apply": async () => ({ path: `${await plan()}/apply`, body: { canary: 1 } }),
  "POST /v1/plans/{id}/continue": async () => {
    const path = await plan();
    await service.db.query("update carillon.plans set state = 'waiting' where state = 'ready'");
    return { path: `${path}/continue` };
  },
  "POST /v1/plans/{id}/abort": async () => ({ path: `${await plan()}/abort` }),
  "POST /v1/dead-letters/requeue": async () => {
    await deadLetter();
    return { body: { filter: { userId: PERSON } } };
  },
  "POST /v1/callback-dead-letters/requeue": async () => {
    await deadCallback();
    return { body: { filter: {} } };
  },
  "PUT /v1/schedules/{key}": () => ({ path: "/v1/schedules/k", body: { cron: "0 0 1 1 *", notification } }),
  "POST /v1/schedules/{key}/pause": () => ({ path: "/v1/schedules/k/pause" }),
  "POST /v1/schedules/{key}/resume": () => ({ path: "/v1/schedules/k/resume" }),
  "DELETE /v1/schedules/{key}": () => ({ path: "/v1/schedules/k" }),
  "PUT /v1/reminders/{key}": () => ({
    path: "/v1/reminders/k",
    body: { at: LATER, before: ["P1D"], notification },
  }),
  "DELETE /v1/reminders/{key}": () => ({ path: "/v1/reminders/k" }),
  "PUT /v1/reminder-scopes/{scope}": () => ({ path: "/v1/reminder-scopes/guild:1", body: { before: ["P1D"] } }),
  "DELETE /v1/reminder-scopes/{scope}": () => ({ path: "/v1/reminder-scopes/guild:1" }),
  "POST /v1/channels/{name}/pause": () => ({ path: "/v1/channels/sms/pause", body: { reason: "a test" } }),
  "POST /v1/channels/{name}/resume": () => ({ path: "/v1/channels/sms/resume" }),
  "POST /v1/providers/{name}/pause": () => ({ path: "/v1/providers/mail/pause", body: { reason: "a test" } }),
  "POST /v1/providers/{name}/resume": () => ({ path: "/v1/providers/mail/resume" }),
  "POST /v1/tenants/{name}/pause": () => ({ path: "/v1/tenants/default/pause", body: { reason: "a test" } }),
  "POST /v1/tenants/{name}/resume": () => ({ path: "/v1/tenants/default/resume" }),
  "PATCH /v1/tenants/{name}": () => ({ path: "/v1/tenants/default", body: { weight: 2 } }),
  "POST /v1/endpoints": () => ({ body: { url: `https://example.com/${SECRET}?token=${SECRET}` } }),
  "PATCH /v1/endpoints/{id}": async () => ({ path: await endpoint(), body: { policy: "persistent" } }),
  "POST /v1/endpoints/{id}/pause": async () => ({ path: `${await endpoint()}/pause`, body: { reason: "a test" } }),
  "POST /v1/endpoints/{id}/resume": async () => ({ path: `${await endpoint()}/resume` }),
  "POST /v1/endpoints/{id}/replay": async () => {
    await until(async () => (await service.ask("GET", "/v1/events?limit=1")).body.data[0]);
    return { path: `${await endpoint()}/replay`, body: { since: "2020-01-01T00:00:00Z" } };
  },
  "POST /v1/endpoints/{id}/rotate": async () => ({ path: `${await endpoint()}/rotate` }),
  "DELETE /v1/endpoints/{id}": async () => ({ path: await endpoint() }),
  "POST /v1/sources/{name}/pause": () => ({ path: "/v1/sources/orders/pause", body: { reason: "a test" } }),
  "POST /v1/sources/{name}/resume": () => ({ path: "/v1/sources/orders/resume" }),
  "POST /v1/sinks/{name}/pause": () => ({ path: "/v1/sinks/bus/pause", body: { reason: "a test" } }),
  "POST /v1/sinks/{name}/resume": () => ({ path: "/v1/sinks/bus/resume" }),
  "POST /v1/sinks/{name}/replay": async () => {
    await startFollower(service.db, "sink bus", await findFeedEnd(service.db));
    return { path: "/v1/sinks/bus/replay", body: { since: "2020-01-01T00:00:00Z" } };
  },
  "DELETE /v1/sinks/{name}": async () => {
    await ensureConnector(service.db, { kind: "sink", name: "gone" }, "kafka");
    return { path: "/v1/sinks/gone" };
  },
  "POST /v1/queue/migration": async () => {
    await service.db.query("select carillon.queue_choose('redis')");
    return { body: { to: "postgres" } };
  },
  "DELETE /v1/queue/migration": async () => {
    await service.db.query("update carillon.engine_moves set state = 'moving', ended_at = null");
    return {};
  },
  "DELETE /v1/users/{userId}": () => ({ path: `/v1/users/${PERSON}` }),
  "POST /v1/sessions": () => ({}),
  "DELETE /v1/sessions": async () => {
    const { headers } = await service.ask("POST", "/v1/sessions");
    return { cookie: headers.get("set-cookie")?.split(";")[0] ?? "" };
  },
  "POST /v1/keys": () => ({ body: { name: "n", scopes: ["read"], tenant: "acme" } }),
  "DELETE /v1/keys/{id}": async () => {
    const { body } = await service.ask("POST", "/v1/keys", { name: "n", scopes: ["read"] });
    return { path: `/v1/keys/${body.id}` };
  },
};

const lines = async (): Promise<{ action: string; request_id: string; address: string }[]> =>
  (await service.db.query("select * from carillon.audit order by seq")).rows;

/** All that is kept, in short. Processes tell of themselves at any time, and secrets of the deployment are made when first needed. */
async function everything(): Promise<string> {
  const { rows: tables } = await service.db.query<{ name: string }>(
    `select c.relname as name from pg_class c where c.relnamespace = 'carillon'::regnamespace and c.relkind = 'r'
       and c.relname not in ('workers', 'leaders', 'followers', 'epochs', 'secrets')`,
  );
  const digests = tables.map(
    ({ name }) =>
      `select '${name} ' || md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as d from carillon."${name}" t`,
  );
  const { rows } = await service.db.query<{ d: string }>(digests.join(" union all "));
  return rows
    .map(({ d }) => d)
    .sort()
    .join("\n");
}

test("every route that changes something leaves a line, or is on the list of those that need not; where the line cannot be written nothing is changed", async () => {
  await service.db.query("alter table carillon.audit add constraint never check (request_id <> 'refused')");
  const { body } = await service.ask("GET", "/openapi.json");
  const changing = Object.entries(body.paths as { [path: string]: object }).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => method !== "get")
      .map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.deepEqual(
    changing.filter((route) => !(route in CALLS) && !(route in LEFT_OUT)),
    [],
    "not tried here, and no reason to leave it out",
  );
  assert.deepEqual(
    [...Object.keys(CALLS), ...Object.keys(LEFT_OUT)].filter((route) => !changing.includes(route)),
    [],
    "no longer there",
  );
  for (const [route, call] of Object.entries(CALLS)) {
    const [method = "", template = ""] = route.split(" ");
    const { path = template, body, cookie } = await call();
    const ask = (requestId: string) => {
      const by = cookie === undefined ? {} : { cookie, "sec-fetch-site": "same-origin" };
      const headers = { "x-request-id": requestId, ...by };
      return service.ask(method, path, body, { headers, ...(cookie !== undefined && { key: null }) });
    };
    const was = await everything();
    const refused = await ask("refused");
    assert.equal(refused.status, 500, `${route} is not one transaction with its line`);
    assert.equal(await everything(), was, route);
    const requestId = `audit-${randomBytes(6).toString("hex")}`;
    const answer = await ask(requestId);
    assert.ok(answer.status < 300, `${route}: ${answer.status} ${JSON.stringify(answer.body)}`);
    assert.equal(answer.headers.get("x-request-id"), requestId);
    const written = (await lines()).filter((line) => line.request_id === requestId);
    assert.ok(written.length >= 1, `${route} leaves no line`);
    assert.ok(
      written.every(({ address }) => /127\.0\.0\.1$/.test(address)),
      route,
    );
  }
});

test("no line holds a secret, a user id, an address or the content of a notice, nor is any of them long", async () => {
  const { rows } = await service.db.query<{ line: string }>(
    "select row_to_json(a)::text as line from carillon.audit a",
  );
  assert.ok(rows.length > 25);
  const { rows: keys } = await service.db.query<{ hash: Buffer }>("select hash from carillon.keys");
  const never = [SECRET, PERSON, ...keys.map(({ hash }) => hash.toString("hex"))];
  for (const { line } of rows) {
    for (const planted of never) assert.ok(!line.includes(planted), line);
    assert.ok(line.length < 8_000, line);
  }
});
