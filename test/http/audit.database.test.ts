// The audit log: a line with every change, neither without the other; who sees which, and for how long.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "#client/client.ts";
import { forgetAudit, makeAuditMonths } from "#store/audit.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({ roles: ["api", "scheduler"] });
});
after(() => service.stop());

type Line = { action: string; object: string; actor: { kind: string; id: string; name?: string }; change: Change } & {
  [field: string]: unknown;
};
type Change = { before?: { [field: string]: unknown }; after?: { [field: string]: unknown } };
const audit = async (query = "", key = service.key): Promise<Line[]> => {
  const { status, body } = await service.ask("GET", `/v1/audit${query}`, undefined, { key });
  assert.equal(status, 200, JSON.stringify(body));
  return body.data;
};
const count = async (): Promise<number> =>
  Number((await service.db.query("select count(*) from carillon.audit")).rows[0].count);

test("a line says who did what to what, from where and with which request, and only what is other than before", async () => {
  await service.makeKey({ tenant: "weighed", scopes: ["read"] });
  const asked = { headers: { "x-request-id": "req-1" } };
  await service.ask("PATCH", "/v1/tenants/weighed", { weight: 7 }, asked);
  const [line] = await audit("?action=tenant.weigh");
  const { at, address, ...rest } = line as Line;
  assert.ok(Math.abs(Date.parse(String(at)) - Date.now()) < 60_000);
  assert.match(String(address), /127\.0\.0\.1/);
  assert.deepEqual(rest, {
    actor: { kind: "key", id: "environment", name: "CARILLON_API_KEY" },
    action: "tenant.weigh",
    object: "tenant:weighed",
    tenant: "weighed",
    change: { before: { weight: 1 }, after: { weight: 7 } },
    requestId: "req-1",
  });
  const before = await count();
  await service.ask("PATCH", "/v1/tenants/weighed", { weight: 7 });
  assert.equal(await count(), before, "what changes nothing is no change");
});

test("of a long template the log keeps the beginning and a digest", async () => {
  const put = (text: string) =>
    service.ask("PUT", "/v1/templates/long", { channel: "sms", name: "n", content: { body: text } });
  await put(`first ${"x".repeat(60_000)}`);
  await put(`second ${"x".repeat(60_000)}`);
  const [{ change } = { change: {} as Change }] = await audit("?object=template:long");
  const [was, is] = [change.before?.content, change.after?.content] as { begins: string; digest: string }[];
  assert.match(was?.begins ?? "", /first/);
  assert.match(is?.begins ?? "", /second/);
  assert.notEqual(was?.digest, is?.digest);
  assert.equal(change.after?.channel, undefined, "it stayed");
});

test("a change whose line cannot be written is not made, and a change that is rolled back leaves no line", async (t) => {
  const { db } = service;
  const { body: waiting } = await service.ask("POST", "/v1/notifications", {
    ...email(),
    scheduledFor: "2099-01-01T00:00:00Z",
  });
  const lines = await count();
  await db.query("alter table carillon.audit add constraint never check (request_id <> 'refused') not valid");
  t.after(() => db.query("alter table carillon.audit drop constraint never"));
  const refused = { headers: { "x-request-id": "refused" } };
  const calls: [string, string, unknown?][] = [
    ["POST", "/v1/keys", { name: "never", scopes: ["read"], tenant: "never" }],
    ["PUT", "/v1/templates/never", { channel: "sms", name: "n", content: { body: "Hello" } }],
    ["PUT", "/v1/suppressions/never@example.com", {}],
    ["POST", `/v1/notifications/${waiting.notificationId}/cancel`],
    ["POST", "/v1/channels/sms/pause", { reason: "never" }],
    ["PUT", "/v1/schedules/never", { cron: "0 0 1 1 *", notification: email() }],
  ];
  for (const [method, path, body] of calls) {
    assert.equal((await service.ask(method, path, body, refused)).status, 500, path);
  }
  const { rows } = await db.query(
    `select (select count(*) from carillon.keys where name = 'never') + (select count(*) from carillon.tenants where name = 'never')
       + (select count(*) from carillon.templates where id = 'never') + (select count(*) from carillon.suppressions)
       + (select count(*) from carillon.pauses) + (select count(*) from carillon.schedules) as changed`,
  );
  assert.equal(Number(rows[0].changed), 0);
  const { body: record } = await service.ask("GET", `/v1/notifications/${waiting.notificationId}`);
  assert.equal(record.status, "pending");

  // The key is refused after its line was written: an id cannot be there twice.
  await db.query("alter table carillon.keys add constraint never check (name <> 'rolled back')");
  t.after(() => db.query("alter table carillon.keys drop constraint never"));
  await service.ask("POST", "/v1/keys", { name: "rolled back", scopes: ["read"] });
  assert.equal(await count(), lines);
});

test("a tenant sees what was done to its things, by whomever, and nothing of others; who runs the deployment sees what is everybody's", async () => {
  const acme = await service.makeKey({ tenant: "acme", scopes: ["admin"] });
  await service.makeKey({ tenant: "other", scopes: ["admin"] });
  await service.ask("PUT", "/v1/suppressions/a@example.com", {}, { key: acme });
  await service.ask("POST", "/v1/channels/slack/pause", { reason: "everybody's" });
  await service.ask("POST", "/v1/channels/slack/resume");
  const theirs = await audit("", acme);
  assert.deepEqual(
    theirs.map(({ action, tenant }) => [action, tenant]),
    [
      ["suppression.keep", "acme"],
      ["key.create", "acme"],
      ["tenant.create", "acme"],
    ],
  );
  const ours = await audit();
  assert.ok(ours.some(({ action, object }) => action === "channel.resume" && object === "channel:slack"));
  assert.ok(
    ours.some(({ action, tenant }) => action === "key.create" && tenant === "other"),
    "what one's own key did",
  );
  assert.ok(!ours.some(({ action, tenant }) => action === "suppression.keep" && tenant === "acme"));
  const reader = await service.makeKey({ tenant: "acme", scopes: ["read", "send"] });
  assert.equal((await service.ask("GET", "/v1/audit", undefined, { key: reader })).status, 403);
});

test("people are kept under a pseudonym, by which who knows them finds them", async () => {
  await service.ask("PUT", "/v1/suppressions/Grace@example.com", {});
  const [line] = await audit("?object=suppression:GRACE@example.com");
  assert.match(line?.object ?? "", /^suppression:~[0-9a-f]{32}$/);
  assert.equal((await audit(`?object=${line?.object}`)).length, 1);
  assert.ok((await audit("?object=suppression")).length >= 1);
  assert.deepEqual(await audit("?object=suppression:nobody@example.com"), []);
});

test("nobody can say that they came from elsewhere, and a request id that is none of ours to keep is replaced", async () => {
  const headers = { "x-forwarded-for": "203.0.113.9", "x-real-ip": "203.0.113.9", forwarded: "for=203.0.113.9" };
  const asked = { headers: { ...headers, "x-request-id": "x".repeat(5_000) } };
  const { status } = await service.ask("PUT", "/v1/suppressions/forged@example.com", {}, asked);
  assert.equal(status, 200);
  const [line] = await audit("?object=suppression:forged@example.com");
  assert.match(String(line?.address), /^(::ffff:)?127\.0\.0\.1$/);
  assert.match(String(line?.requestId), /^[\w-]{8,64}$/);
});

test("a tenant that fills the log with its own changes is in nobody else's way", async () => {
  const quiet = await service.makeKey({ tenant: "quiet", scopes: ["admin"] });
  await service.ask("PUT", "/v1/suppressions/before@example.com", {}, { key: quiet });
  await service.makeKey({ tenant: "loud", scopes: ["send"] });
  await service.db.query(
    `insert into carillon.audit (tenant, actor_kind, actor, action, object)
     select t.id, 'key', 'k', 'notification.cancel', 'notification:' || g from carillon.tenants t, generate_series(1, 20000) g where t.name = 'loud'`,
  );
  await service.ask("DELETE", "/v1/suppressions/before@example.com", undefined, { key: quiet });
  // Were theirs looked at too, a page with a rare filter would end before it came to the first.
  const { body } = await service.ask("GET", "/v1/audit?action=suppression.keep", undefined, { key: quiet });
  assert.equal(body.data.length, 1);
  assert.equal(body.nextCursor, null);
});

test("a requeue of thousands in several batches is one line, with filter and count", async () => {
  const { db } = service;
  const requests = Array.from({ length: 1000 }, (_, n) => ({ ...email(n), scheduledFor: "2099-01-01T00:00:00Z" }));
  for (let batch = 0; batch < 3; batch++) {
    await service.ask("POST", "/v1/notifications/batch", { notifications: requests });
  }
  await db.query("delete from carillon.later");
  await db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt)
     select id, tenant, 'attempt', 'processing', 'failed', 1 from carillon.notifications n
     where not exists (select from carillon.events e where e.notification_id = n.id)`,
  );
  const { body } = await service.ask("POST", "/v1/dead-letters/requeue", {
    filter: { channel: "email" },
    limit: 10_000,
  });
  assert.ok(body.requeued >= 3000, JSON.stringify(body));
  const requeues = await audit("?action=dead-letters.requeue");
  assert.equal(requeues.length, 1);
  const { plan, ...after } = requeues[0]?.change.after ?? {};
  assert.deepEqual(after, { filter: { channel: "email" }, requeued: body.requeued });
  assert.equal((await service.ask("GET", `/v1/plans/${plan}`)).body.progress.done, body.requeued);
});

test("a pause that ends by itself is the scheduler's line", async () => {
  const soon = new Date(Date.now() + 500).toISOString();
  await service.ask("POST", "/v1/channels/push/pause", { reason: "a moment", until: soon });
  const [line] = await until(async () => {
    const ended = await audit("?action=channel.resume&object=channel:push");
    return ended.length > 0 ? ended : undefined;
  });
  assert.deepEqual(line?.actor, { kind: "process", id: "scheduler" });
  assert.equal(line?.change.before?.reason, "a moment");
});

test("pages go on where the last ended, also with a rare filter, and the client reads them", async () => {
  const client = createClient({ url: service.url, key: service.key });
  const all = (await client.audit({ limit: 200 })).data;
  const seen = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof client.audit>> = await client.audit({ limit: 3, ...(cursor && { cursor }) });
    seen.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor);
  assert.deepEqual(seen, all);
  const byName = await client.audit({ actor: "CARILLON_API_KEY", action: "key.create", since: all.at(-1)?.at ?? "" });
  assert.ok(byName.data.length > 0);
});

test("months that were kept for long enough are dropped, and what lies in no month is deleted", async () => {
  const { db } = service;
  await db.query(
    `create table carillon.audit_202001 (like carillon.audit including all);
     alter table carillon.audit attach partition carillon.audit_202001 for values from ('2020-01-01Z') to ('2020-02-01Z');
     insert into carillon.audit (at, tenant, actor_kind, actor, action, object) values
       ('2020-01-15Z', 1, 'process', 'a test', 'key.create', 'key:old'),
       ('2020-03-15Z', 1, 'process', 'a test', 'key.create', 'key:older')`,
  );
  const kept = (await count()) - 2;
  while ((await forgetAudit(db, 400, 10)) > 0);
  const dropped = await audit("?action=audit.drop");
  assert.deepEqual(
    dropped.map(({ object, actor }) => [object, actor.id]),
    [
      ["audit:default", "keeper"],
      ["audit:202001", "keeper"],
    ],
    "and that is in the log",
  );
  assert.equal(await count(), kept + 2);
  assert.equal((await db.query("select to_regclass('carillon.audit_202001') as gone")).rows[0].gone, null);
  for await (const _ of makeAuditMonths(db));
  const { rows } = await db.query("select count(*) from pg_inherits where inhparent = 'carillon.audit'::regclass");
  assert.equal(Number(rows[0].count), 4, "this month, the next two, and what lies in none");
});
