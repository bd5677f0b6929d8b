// Forgetting a person: nothing that is kept tells of them any more, the ledger balances, and others go on as before.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { createClient } from "#client/client.ts";
import type { Config } from "#config/read.ts";
import { applyReports, keepReports } from "#record/reports.ts";
import { setEndpointState } from "#store/endpoints.ts";
import { type CallbackReceiver, startReceiver } from "../support/callback-receiver.ts";
import { makeEndpoint, SECRET_KEYS } from "../support/endpoint.ts";
import { type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until as soon } from "../support/until.ts";

let service: Service;
let receiver: CallbackReceiver;
before(async () => {
  // Says what it was told; under one path, that it should be told later.
  receiver = await startReceiver(({ path, raw }, response) =>
    response.writeHead(path.startsWith("/later") ? 503 : 200).end(raw),
  );
  service = await startService({
    roles: ["api", "worker", "scheduler"],
    secretKeys: SECRET_KEYS,
    providers: { dev: { type: "dev" }, hooks: { type: "webhook" }, inbox: { type: "inbox" } } as Config["providers"],
    routes: { email: "dev", sms: "dev", push: "dev", webhook: "hooks", inbox: "inbox" } as Config["routes"],
    allowAddresses: ["127.0.0.0/8"],
  });
});
after(async () => {
  await service.stop();
  receiver.close();
});

/** However busy the machine is: a callback that was given up for that is tried again after half a minute. */
const until = <Value>(look: () => Promise<Value | undefined>) => soon(look, 120_000);
const LATER = "2099-01-01T00:00:00Z";
const somebody = () => `ada${randomBytes(5).toString("hex")}`;
const ask = async (method: string, path: string, body?: unknown) => {
  const answer = await service.ask(method, path, body);
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
};
const send = async (request: object): Promise<string> =>
  (await ask("POST", "/v1/notifications", request)).notificationId;
const statusOf = async (id: string) => (await ask("GET", `/v1/notifications/${id}`)).status;
const ended = (id: string) =>
  until(async () => (["sent", "delivered", "failed"].includes(await statusOf(id)) ? true : undefined));
const forgotten = (userId: string) =>
  until(async () => {
    const deletion = await ask("GET", `/v1/users/${userId}/deletion`);
    return deletion.state === "done" ? deletion : undefined;
  });

/** Every row of every table, as text: what a dump would hold. */
async function dump(): Promise<{ table: string; row: string }[]> {
  const { rows: tables } = await service.db.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')`,
  );
  const all = [];
  for (const { name } of tables) {
    const { rows } = await service.db.query<{ row: string }>(`select row_to_json(t)::text as row from ${name} t`);
    all.push(...rows.map(({ row }) => ({ table: name, row })));
  }
  return all;
}
const tracesOf = async (name: string) => (await dump()).filter(({ row }) => row.toLowerCase().includes(name));

/** Tables of which a row may tell who somebody is. The test below plants a person in each. */
const TELLING = [
  ...[
    "notifications",
    "events",
    "idempotency",
    "inboxes",
    "inbox_items",
    "devices",
    "suppressions",
    "reports",
    "dev_messages",
  ],
  ...["schedules", "reminders", "broadcasts", "deletions", "audit", "plans"],
];
/** Those with texts that tell nobody's name, and why not. */
const SILENT: { [table: string]: string } = {
  tenants: "whose notifications they are",
  keys: "of applications",
  secrets: "of the deployment",
  credentials: "of tenants, sealed",
  templates: "for everybody",
  template_versions: "for everybody",
  pauses: "of channels, providers and tenants",
  scope_members: "names that applications choose for reminders",
  reminder_scopes: "the same",
  reminder_plan: "the same, and ids of notifications",
  replans: "the same",
  runs: "names that applications choose for schedules, and ids of notifications",
  receipts: "ids of providers",
  limits: "digests, until they are idle",
  breakers: "servers",
  locks: "ids of notifications",
  workers: "processes",
  leaders: "processes",
  migrations: "files",
  regions: "places",
  later: "accounts with providers",
  feed: "ids of notifications",
  followers: "processes",
  epochs: "clusters",
  endpoints: "of tenants",
  callback_markers: "gone with the notification",
  callback_lines: "digests",
  replays: "of endpoints",
  archive_weeks: "weeks",
  archive_parts: "files",
  archive_stragglers: "ids of notifications",
  archive_trouble: "weeks",
  connectors: "of the deployment",
  claims: "where something was claimed from",
  engine: "where ready work waits",
  engine_moves: "the same",
  engine_move_lists: "ids of notifications",
  engine_audits: "the same",
  handoffs: "ids of notifications",
  sessions: "ids of keys and sessions",
  tally_lines: "providers and outcomes",
  dev_faults: "providers and channels",
  source_offsets: "partitions",
  refusals: "offsets, ids of notifications and what is wrong with them; no message, and no content",
};

test("every table with a text in it is one that is looked at here, or tells nobody's name", async () => {
  const { rows } = await service.db.query<{ name: string }>(
    `select distinct p.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
     left join pg_inherits i on i.inhrelid = c.oid join pg_class p on p.oid = coalesce(i.inhparent, c.oid)
     where c.relnamespace = 'carillon'::regnamespace and c.relkind in ('r', 'p')
       and a.atttypid in ('text'::regtype, 'json'::regtype, 'jsonb'::regtype, 'text[]'::regtype)`,
  );
  const unknown = rows.map(({ name }) => name).filter((name) => !TELLING.includes(name) && !(name in SILENT));
  assert.deepEqual(unknown, [], "say of a new table whether it may tell who somebody is");
});

async function plant(name: string): Promise<string[]> {
  const { db } = service;
  const receipt = randomBytes(5).toString("hex");
  const address = `${name}@example.com`;
  const recipient = { userId: name, email: address, phone: "+33612345678", metadata: { name } };
  const content = { subject: `Dear ${name}`, textBody: name, title: name, body: name };
  const callbackUrl = `${receiver.url}/asked?user=${name}`;
  const more = { metadata: { name }, idempotencyKey: `welcome-${name}`, callbackUrl };
  const endpoint = await makeEndpoint(service, { url: `${receiver.url}/told`, events: ["sent"], fifo: "user" });
  await ask("PUT", `/v1/users/${name}/devices/token-${name}`, { platform: "ios" });
  const mail = await send({ channel: "email", recipient, content, ...more });
  const item = await send({ channel: "inbox", recipient, content });
  const waiting = await send({ channel: "sms", recipient, content, scheduledFor: LATER });
  for (const id of [mail, item]) await ended(id);
  await ask("PUT", `/v1/suppressions/${address}`, { reason: `${name} asked for it` });
  await ask("DELETE", `/v1/suppressions/${address}`);
  await ask("PUT", `/v1/suppressions/${address}`, { reason: `${name} asked for it` });
  const notice = { channel: "email", content: { subject: "s", textBody: "t" } };
  const both = { ...notice, recipients: [recipient, { userId: "other", email: "other@example.com" }] };
  await ask("PUT", "/v1/schedules/theirs", { cron: "0 0 1 1 *", notification: { ...notice, recipient } });
  await ask("PUT", "/v1/schedules/shared", { cron: "0 0 1 1 *", notification: both });
  await ask("PUT", "/v1/reminders/theirs", { at: LATER, before: ["P1D"], notification: { ...notice, recipient } });
  await ask("PUT", "/v1/reminders/shared", { at: LATER, before: ["P1D"], notification: both });
  await db.query(
    `insert into carillon.runs (tenant, key, tick, outcome, skipped) values (1, 'shared', '2020-01-01Z', 'sending', 0)
     on conflict do nothing`,
  );
  await db.query(
    `insert into carillon.broadcasts (tenant, notice, run_key, run_tick, reached, turn_at)
     values (1, $1, 'shared', '2020-01-01Z', 1, '2098-01-01Z')`,
    [JSON.stringify(both)],
  );
  await db.query("update carillon.events set error = $2, detail = $3 where notification_id = $1 and type = 'attempt'", [
    mail,
    `550 no such user ${address}`,
    JSON.stringify({ said: address }),
  ]);
  await db.query(
    `insert into carillon.receipts (provider, receipt, tenant, notification_id, at)
     select 'dev', $2, 1, notification_id, at from carillon.events where notification_id = $1 and type = 'attempt'`,
    [mail, receipt],
  );
  await ask("POST", "/v1/plans", { kind: "requeue", filter: { userId: name, error: address } });
  const at = new Date().toISOString();
  const report = { receipt, reportId: receipt, kind: "delivered", at, address, reason: `told ${name}` };
  await keepReports(db, { provider: "dev", owner: 0 }, [report as never]);
  await applyReports(db, 10);
  // All that are made: the endpoint is told of "sent", the URL of the request of "sent" and "delivered".
  const callbacks = async () => {
    const { rows } = await db.query<{ status: string }>(
      `select r.user_id, r.status from carillon.records r where r.tenant = -1 and r.user_id in ('requests', $1)
         and r.request #>> '{callback,data,notificationId}' = $2`,
      [endpoint, mail],
    );
    return rows;
  };
  await until(async () => {
    const made = await callbacks();
    return made.length === 3 && made.every(({ status }) => status === "sent") ? true : undefined;
  }).catch(async (error: Error) => {
    const { body } = await service.ask("GET", "/health");
    throw new Error(`${error.message}: ${JSON.stringify({ callbacks: await callbacks(), health: body })}`);
  });
  await db.query("delete from carillon.endpoints where id = $1", [endpoint]);
  return [mail, item, waiting];
}

test("a person who is in every table is in none afterwards: blanked in the record, removed elsewhere, and no stranger's thing is touched", async () => {
  const name = somebody();
  const ids = await plant(name);
  const planted = new Set((await tracesOf(name)).map(({ table }) => table.replace(/^carillon\.|_(\d+|default)$/g, "")));
  const missing = TELLING.filter((table) => !planted.has(table) && !["deletions", "audit", "reports"].includes(table));
  assert.deepEqual(missing, [], "the person was planted in every one");
  const ledger = await ask("GET", "/v1/ledger");

  const asked = await service.ask("DELETE", `/v1/users/${name}`);
  assert.equal(asked.status, 202);
  assert.equal(asked.headers.get("location"), `/v1/users/${name}/deletion`);
  const done = await forgotten(name);
  assert.equal(done.notifications, ids.length);

  assert.deepEqual(await tracesOf(name), []);
  assert.deepEqual(await tracesOf("+33612345678"), []);
  const after = await ask("GET", "/v1/ledger");
  assert.ok(after.balanced, JSON.stringify(after));
  assert.equal(after.accepted, ledger.accepted);
  assert.equal(after.cancelled, ledger.cancelled + 1, "what waited was cancelled");
  const record = await ask("GET", `/v1/notifications/${ids[0]}`);
  assert.deepEqual([record.recipient, record.content, record.forgotten], [{}, {}, true]);

  const { body: gone } = await service.ask("GET", "/v1/schedules/theirs");
  assert.equal(gone.code, "NOT_FOUND");
  const { notification } = await ask("GET", "/v1/reminders/shared");
  assert.deepEqual(notification.recipients, [{ userId: "other", email: "other@example.com" }]);
  const { rows } = await service.db.query("select notice, reached from carillon.broadcasts");
  assert.deepEqual(
    [rows[0].notice.recipients.length, rows[0].reached],
    [1, 0],
    "nobody is left out, nobody has it twice",
  );
  await service.db.query("delete from carillon.broadcasts");

  const lines = await ask("GET", `/v1/audit?object=user:${name}`);
  assert.deepEqual(
    lines.data.map(({ action }: { action: string }) => action),
    ["user.deleted", "user.delete"],
  );
  const retried = await service.ask("POST", `/v1/notifications/${ids[2]}/retry`);
  assert.equal(retried.body.code, "NOT_RETRYABLE", "there is nothing left to send");
});

test("an address that was suppressed goes on being protected, and can be let go of by who knows it", async () => {
  const name = somebody();
  const recipient = { userId: name, email: `${name}@Example.com` };
  const mail = { channel: "email", recipient, content: { subject: "s", textBody: "t" } };
  await ended(await send(mail));
  await ask("PUT", `/v1/suppressions/${name}@example.com`, {});
  await ask("DELETE", `/v1/users/${name}`);
  await forgotten(name);
  const { data } = await ask("GET", "/v1/suppressions?limit=200");
  assert.ok(!JSON.stringify(data).includes(name));
  // Workers look every five seconds whether there are any.
  const comesTo = (wanted: string) =>
    until(async () => {
      const id = await send(mail);
      const status = await until(async () => {
        const now = await statusOf(id);
        return ["sent", "suppressed"].includes(now) ? now : undefined;
      });
      return status === wanted ? true : undefined;
    });
  await comesTo("suppressed");
  await ask("DELETE", `/v1/suppressions/${name}@example.com`);
  await comesTo("sent");
});

test("what a worker has in hand ends first; what is accepted afterwards for the same user is new, and stays", async (t) => {
  const receiver = await startStandIn();
  t.after(() => receiver.close());
  receiver.answer({ status: 200, delayMs: 1_500 });
  const name = somebody();
  const hook = {
    channel: "webhook",
    recipient: { userId: name, webhookUrl: `${receiver.url}/hook` },
    content: { body: name },
  };
  const held = await send(hook);
  await receiver.arrived(1);
  await ask("DELETE", `/v1/users/${name}`);
  assert.equal((await ask("DELETE", `/v1/users/${name}`)).state, "running", "asking again changes nothing");
  const next = await send({ ...hook, scheduledFor: LATER });
  await forgotten(name);
  const record = await ask("GET", `/v1/notifications/${held}`);
  assert.deepEqual([record.status, record.forgotten], ["sent", true], "it was sent, and then forgotten");
  const { recipient, status } = await ask("GET", `/v1/notifications/${next}`);
  assert.deepEqual([recipient.userId, status], [name, "pending"]);
  assert.equal((await ask("DELETE", `/v1/users/${name}`)).notifications, 0, "another deletion begins");
  await forgotten(name);
  assert.equal(await statusOf(next), "cancelled");
});

/** Callbacks about it, with whether they tell of somebody. */
const callbacksAbout = async (id: string, name: string) => {
  const { rows } = await service.db.query<{ endpoint: string; status: string; tells: boolean }>(
    `select user_id as endpoint, status, request::text like '%' || $2 || '%' as tells from carillon.records
     where tenant = -1 and request #>> '{callback,data,notificationId}' = $1 order by user_id`,
    [id, name],
  );
  return rows;
};

test("callbacks that wait for an endpoint go there without telling of anybody, and those for the URL of a request are cancelled", async () => {
  const name = somebody();
  const endpoint = await makeEndpoint(service, { url: `${receiver.url}/paused`, events: ["sent"], fifo: "user" });
  await setEndpointState(service.db, { tenant: 1, id: endpoint }, "paused", "a test");
  const id = await send({
    channel: "email",
    recipient: { userId: name, email: `${name}@example.com` },
    content: { subject: "s", textBody: "t" },
    metadata: { name },
    callbackUrl: `${receiver.url}/later?user=${name}`,
    callbackEvents: ["sent"],
  });
  await until(async () => {
    const about = await callbacksAbout(id, name);
    const hasAsked = receiver.posted.some(({ path }) => path.includes(name));
    return about.length === 2 && hasAsked && about.every(({ status }) => status === "pending") ? true : undefined;
  });
  await ask("DELETE", `/v1/users/${name}`);
  await forgotten(name);
  assert.deepEqual(await callbacksAbout(id, name), [
    { endpoint, status: "pending", tells: false },
    { endpoint: "requests", status: "cancelled", tells: false },
  ]);
  assert.deepEqual(await tracesOf(name), []);
  await setEndpointState(service.db, { tenant: 1, id: endpoint }, "active", null);
  await service.db.query("update carillon.later set due_at = carillon.now() where tenant = -1");
  const [posted] = await until(async () => (receiver.at("/paused").length > 0 ? receiver.at("/paused") : undefined));
  const { notificationId, status, userId, metadata, forgotten: isForgotten } = posted?.body.data ?? {};
  assert.deepEqual([notificationId, status, userId, metadata, isForgotten], [id, "sent", undefined, undefined, true]);
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
});

test("a callback that was being made meanwhile is waited for, and blanked", async () => {
  const name = somebody();
  const mail = { channel: "email", recipient: { userId: name, email: "e@example.com" } };
  const id = await send({ ...mail, content: { subject: "s", textBody: "t" }, scheduledFor: LATER });
  const maker = await service.db.connect();
  await maker.query("begin");
  await maker.query("select pg_advisory_xact_lock(hashtext('carillon callbacks'))");
  await ask("DELETE", `/v1/users/${name}`);
  await until(async () => {
    const { rows } = await service.db.query("select phase from carillon.deletions where user_id = $1", [name]);
    return rows[0]?.phase === "callbacks" ? true : undefined;
  });
  await maker.query(
    `insert into carillon.notifications (tenant, id, seq, channel, priority, user_id, accepted_at, request)
     select -1, carillon.new_id(), nextval('carillon.acceptance'), 'callback', 4, 'requests', carillon.now(), json_build_object('channel', 'callback',
       'content', json_build_object(), 'callback', json_build_object('data', json_build_object('notificationId', $1::text, 'userId', $2::text)))`,
    [id, name],
  );
  await maker.query("commit");
  maker.release();
  await forgotten(name);
  assert.deepEqual(await tracesOf(name), []);
});

test("what an open transaction brings in behind where the deletion has come is found, however much there is", async () => {
  const name = somebody();
  const one = {
    channel: "email",
    recipient: { userId: name, email: `${name}@example.com` },
    content: { subject: "s", textBody: "t" },
    scheduledFor: LATER,
  };
  const client = await service.db.connect();
  await client.query("begin");
  await client.query("select carillon.send($1)", [JSON.stringify(one)]);
  await ask("POST", "/v1/notifications/batch", { notifications: Array.from({ length: 600 }, () => one) });
  // Between the first batch and the last the open transaction ends.
  await service.db.query(
    `create function public.halts() returns trigger language plpgsql as $$
     begin perform pg_advisory_xact_lock(4711); return new; end $$;
     create trigger halts before update of blanked on carillon.deletions for each row
       when (new.phase = 'notifications' and old.phase = 'notifications') execute function public.halts()`,
  );
  const halt = await service.db.connect();
  await halt.query("begin");
  await halt.query("select pg_advisory_xact_lock(4711)");
  await ask("DELETE", `/v1/users/${name}`);
  await until(async () => {
    const { rows } = await service.db.query(
      "select from pg_locks where locktype = 'advisory' and objid = 4711 and not granted",
    );
    return rows.length > 0 ? true : undefined;
  });
  await client.query("commit");
  client.release();
  await halt.query("commit");
  halt.release();
  await forgotten(name);
  await service.db.query("drop trigger halts on carillon.deletions");
  assert.deepEqual(await tracesOf(name), []);
});

test("what an open transaction brings in late is forgotten too", async () => {
  const name = somebody();
  const client = await service.db.connect();
  await client.query("begin");
  const { rows } = await client.query("select carillon.send($1) as id", [
    JSON.stringify({
      channel: "email",
      recipient: { userId: name, email: `${name}@example.com` },
      content: { subject: "s", textBody: "t" },
    }),
  ]);
  await ask("DELETE", `/v1/users/${name}`);
  await until(async () => {
    const { rows } = await service.db.query(
      "select phase, turn_at > carillon.now() as waits from carillon.deletions where user_id = $1",
      [name],
    );
    return rows[0]?.phase === "notifications" && rows[0].waits ? true : undefined;
  });
  await client.query("commit");
  client.release();
  await forgotten(name);
  assert.deepEqual(await tracesOf(name), []);
  assert.equal((await ask("GET", `/v1/notifications/${rows[0].id}`)).forgotten, true);
});

test("thousands go in batches, each a commit of its own, and another process goes on where one was ended", async () => {
  const name = somebody();
  const recipient = { userId: name, email: `${name}@example.com` };
  const one = { channel: "email", recipient, content: { subject: "s", textBody: "t" }, scheduledFor: LATER };
  await ask("POST", "/v1/notifications/batch", { notifications: Array.from({ length: 1000 }, () => one) });
  await ask("POST", "/v1/notifications/batch", { notifications: Array.from({ length: 600 }, () => one) });
  // The second batch fails once it has done its work, as if its process had been ended.
  await service.db.query(
    `create sequence public.tries;
     create function public.fails() returns trigger language plpgsql as $$
     begin
       if nextval('public.tries') = 2 then raise exception 'ended'; end if;
       return new;
     end $$;
     create trigger fails before update of blanked on carillon.deletions for each row
       when (new.phase = 'notifications' and old.phase = 'notifications') execute function public.fails()`,
  );
  await ask("DELETE", `/v1/users/${name}`);
  const done = await forgotten(name);
  await service.db.query("drop trigger fails on carillon.deletions");
  assert.equal(done.notifications, 1600, "none is counted twice");
  assert.deepEqual(await tracesOf(name), []);
  assert.ok((await ask("GET", "/v1/ledger")).balanced);
});

test("a tenant that has thousands forgotten holds up nobody else's", async () => {
  await service.makeKey({ tenant: "crowd", scopes: ["admin"] });
  await service.db.query(
    `insert into carillon.deletions (tenant, pseudonym, user_id)
     select t.id, carillon.pseudonym(t.id, 'u' || g), 'u' || g from carillon.tenants t, generate_series(1, 5000) g where t.name = 'crowd'`,
  );
  const name = somebody();
  await send({
    channel: "email",
    recipient: { userId: name, email: `${name}@example.com` },
    content: { subject: "s", textBody: "t" },
    scheduledFor: LATER,
  });
  await ask("DELETE", `/v1/users/${name}`);
  await forgotten(name);
  const { rows } = await service.db.query(
    "select count(*)::int as n from carillon.deletions where finished_at is null",
  );
  await service.db.query(
    "delete from carillon.deletions where tenant = (select id from carillon.tenants where name = 'crowd')",
  );
  assert.ok(rows[0].n > 2_500, `${rows[0].n} of 5000 still wait`);
});

test("another tenant's user of the same name is somebody else", async () => {
  const name = somebody();
  const key = await service.makeKey({ tenant: "elsewhere", scopes: ["admin"] });
  const mail = {
    channel: "email",
    recipient: { userId: name, email: `${name}@example.com` },
    content: { subject: "s", textBody: "t" },
  };
  const { body } = await service.ask("POST", "/v1/notifications", { ...mail, scheduledFor: LATER }, { key });
  await ask("DELETE", `/v1/users/${name}`);
  await forgotten(name);
  const theirs = await service.ask("GET", `/v1/notifications/${body.notificationId}`, undefined, { key });
  assert.deepEqual([theirs.body.status, theirs.body.recipient.userId], ["pending", name]);
  assert.equal((await service.ask("GET", `/v1/users/${name}/deletion`, undefined, { key })).status, 404);
});

test("an export has all that is known of a person and nothing of others, page by page, and is in the audit log once", async () => {
  const name = somebody();
  const ids = await plant(name);
  await send({
    channel: "email",
    recipient: { userId: "other", email: "o@example.com" },
    content: { subject: "s", textBody: "t" },
  });
  const client = createClient({ url: service.url, key: service.key });
  const known = [];
  for await (const one of client.users.export(name)) known.push(one);
  const kinds = known.map(({ kind }) => kind);
  assert.deepEqual([...new Set(kinds)], ["notification", "inbox item", "device", "schedule", "reminder", "broadcast"]);
  const notifications = known.filter(({ kind }) => kind === "notification");
  assert.deepEqual(notifications.map(({ notificationId }) => notificationId).sort(), [...ids].sort());
  const [mail] = notifications as unknown as { suppressions: unknown[]; devMessages: unknown[]; events: unknown[] }[];
  assert.equal(mail?.suppressions.length, 1);
  assert.equal(mail?.devMessages.length, 1);
  assert.ok((mail?.events.length ?? 0) >= 2);
  for (const stranger of ["o@example.com", "other@example.com"]) assert.ok(!JSON.stringify(known).includes(stranger));
  const small = await ask("GET", `/v1/users/${name}/export?limit=1`);
  assert.equal(small.data.length, 1);
  const lines = await ask("GET", `/v1/audit?object=user:${name}`);
  assert.deepEqual(
    lines.data.map(({ action }: { action: string }) => action),
    ["user.export", "user.export"],
  );
  await service.db.query("delete from carillon.broadcasts");
  const wrong = await service.ask("GET", `/v1/users/${name}/export?cursor=AAAA`);
  assert.equal(wrong.body.code, "VALIDATION_FAILED");
});

test("a page of an export ends where it is long enough, and none is left out", async () => {
  const name = somebody();
  const long = { title: "t", body: "b", data: { long: "x".repeat(200_000) } };
  const one = { channel: "inbox", recipient: { userId: name }, content: long, scheduledFor: LATER };
  const ids = [];
  for (let n = 0; n < 30; n++) ids.push(await send(one));
  const seen: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const page: { data: { notificationId: string }[]; nextCursor: string | null } = await ask(
      "GET",
      `/v1/users/${name}/export?limit=100${cursor && `&cursor=${cursor}`}`,
    );
    assert.ok(JSON.stringify(page).length < 4.5 * 1024 * 1024);
    seen.push(...page.data.map(({ notificationId }) => notificationId));
    cursor = page.nextCursor;
  }
  assert.deepEqual(seen.sort(), ids.sort());
});
