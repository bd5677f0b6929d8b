// A database that the last release has filled, brought up to date: nothing is lost, and everything goes on.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { ROLES } from "#config/server.ts";
import { newKey } from "#domain/api-key.ts";
import { migrate } from "#store/connection/migrate.ts";
import { chain } from "../support/chain.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
import { startService } from "../support/service.ts";
import { until } from "../support/until.ts";

/** The last migration of release 0.1. */
const RELEASED = 12;
const LONG_AGO = "now() - interval '100 days'";

let database: FreshDatabase;
let db: pg.Client;
before(async () => {
  database = await freshDatabase();
  db = new pg.Client(database.url);
  await db.connect();
});
after(async () => {
  await db.end();
  await database.drop();
});

const notice = (title: string) => ({ channel: "inbox", recipient: { userId: "ada" }, content: { title } });

type Accepted = { id: string; seq: string };
/** As that release did. */
async function accept(request: object, key: string | null = null, dueAt: Date | null = null): Promise<Accepted> {
  const { rows } = await db.query(
    `with x as materialized (select carillon.new_id() as id)
     select x.id, carillon.accept(json_build_array(json_build_object('i', x.id, 't', 1, 'c', $1::json ->> 'channel', 'p', 2,
       'u', $1::json -> 'recipient' ->> 'userId', 'd', $3::timestamptz, 'k', $2::text, 'r', $1::json)), $2 is not null) from x`,
    [JSON.stringify(request), key, dueAt],
  );
  const stored = await db.query("select seq from carillon.notifications where id = $1", [rows[0].id]);
  return { id: rows[0].id, seq: stored.rows[0].seq };
}

/** Ended like this. */
async function ended(title: string, status: string): Promise<string> {
  const { id, seq } = await accept(notice(title));
  await db.query("delete from carillon.ready where seq = $1", [seq]);
  await db.query(
    "insert into carillon.events (notification_id, tenant, type, from_status, to_status) values ($1, 1, $2::text, 'processing', $2::text::carillon.status)",
    [id, status],
  );
  return id;
}

/** Something in every table, and work at every stage. */
async function fill() {
  const key = newKey();
  const at = new Date(Date.now() + 1_000);
  const event = new Date(at.getTime() + 86_400_000);
  const waiting = notice("waiting");
  await accept(waiting, "a key");
  await accept(notice("scheduled"), null, at);
  await accept({ ...notice("filled"), content: { templateId: "greeting", variables: { name: "Ada" } } });
  const claimed = await accept(notice("claimed"));
  const failed = await ended("failed", "failed");
  const sent = await ended("sent", "sent");
  const values: { [statement: string]: unknown[] } = {
    "insert into carillon.keys (id, tenant, name, hash, scopes) values ($1, 1, 'theirs', $2, '{admin}')": [
      key.id,
      key.hash,
    ],
    "insert into carillon.workers (name) values ('gone')": [],
    "insert into carillon.leaders (name, holder, term, until) values ('keeper', 'gone', 3, now())": [],
    [`with taken as (delete from carillon.ready where seq = $1 returning *)
      insert into carillon.claims (token, worker, started_at, lease_until, first_seq, last_seq, done, seqs, priorities, tenants, ids,
        attempts, expiries)
      select nextval('carillon.lease_token'), 1, now(), now(), seq, seq, '0', array[seq], array[priority], array[tenant], array[id],
        array[1::smallint], array[null::timestamptz] from taken`]: [claimed.seq],
    [`insert into carillon.recurrences (tenant, key, every, timezone, from_at, catch_up, notice, next_at)
      values (1, 'tick', 'PT1H', 'UTC', now(), 'once', $1, $2)`]: [
      { ...notice("tick"), callbackUrl: "https://example.com" },
      at,
    ],
    "insert into carillon.runs (tenant, key, tick, outcome, skipped) values (1, 'tick', now() - interval '1 hour', 'sent', 0)":
      [],
    [`insert into carillon.reminders (tenant, key, at, timezone, scopes, notice, offsets, offsets_from)
      values (1, 'event', $2, 'UTC', '{guild:1}', $1, '{P1D}', 'guild:1')`]: [notice("reminder"), event],
    "insert into carillon.scope_members (tenant, scope, key) values (1, 'guild:1', 'event')": [],
    "insert into carillon.reminder_scopes (tenant, scope, before) values (1, 'guild:1', '{P1D}')": [],
    "insert into carillon.reminder_plan (tenant, key, at, before, due_at) values (1, 'event', $1, 'P1D', $2)": [
      event,
      at,
    ],
    "insert into carillon.replans (tenant, scope, total) values (1, 'guild:1', 1)": [],
    "insert into carillon.templates (tenant, id, channel, latest_version) values (1, 'greeting', 'inbox', 1)": [],
    [`insert into carillon.template_versions (tenant, id, version, channel, name, content, engine, strict)
      values (1, 'greeting', 1, 'inbox', 'greeting', '{"title": "Hello {{ name }}"}', 'liquid', false)`]: [],
    "update carillon.templates set active_version = 1": [],
    "insert into carillon.receipts (provider, receipt, tenant, notification_id) values ('mail', 'r1', 1, $1)": [sent],
    [`insert into carillon.reports (provider, report_id, receipt, kind, at, applied_at)
      values ('mail', 'old', 'r0', 'delivered', now(), now()), ('mail', 'waits', 'r2', 'failed', now(), null)`]: [],
    "insert into carillon.suppressions (tenant, address, why) values (1, 'gone@example.com', 'bounce')": [],
    "insert into carillon.devices (tenant, token, user_id, platform) values (1, 'token', 'ada', 'android')": [],
    "insert into carillon.credentials (tenant, provider, sealed) values (1, 'console', 'nobody has this key any more')":
      [],
    "insert into carillon.dev_messages (tenant, notification_id, channel, message) values (1, $1, 'sms', '{}')": [sent],
    "insert into carillon.limits (key) values ('tenant 1')": [],
    "insert into carillon.breakers (account, state, until, openings, worker) values ('inbox', 'open', now() + interval '1 day', 9, 1)":
      [],
    "insert into carillon.locks (key, holder, token, until) values ('1', 'gone', 1, now())": [],
    "insert into carillon.inboxes (tenant, user_id, last_seq) values (1, 'ada', 1)": [],
    "insert into carillon.inbox_items (tenant, user_id, seq, notification_id, title) values (1, 'ada', 1, $1, 'read before')":
      [sent],
    "insert into carillon.secrets (name, secret) values ('another', sha256(''))": [],
    [`select carillon.make_partitions(${LONG_AGO}, ${LONG_AGO})`]: [],
    [`insert into carillon.notifications (tenant, id, seq, channel, priority, accepted_at, request)
      values (1, carillon.first_id(${LONG_AGO}), nextval('carillon.acceptance'), 'console', 2, ${LONG_AGO}, '{}')`]: [],
  };
  for (const [statement, given] of Object.entries(values)) await db.query(statement, given);
  return { key: key.key, waiting, failed, sent };
}

test("a database of the last release, with something in every table, is brought up to date and goes on", async (t) => {
  await migrate(database.url, chain(RELEASED));
  const { key, waiting, failed, sent } = await fill();
  const tables = await db.query(
    "select relname as name from pg_class where relnamespace = 'carillon'::regnamespace and relkind in ('r', 'p') and not relispartition",
  );
  for (const { name } of tables.rows) {
    const { rowCount } = await db.query(`select from carillon.${name} limit 1`);
    assert.equal(rowCount, 1, `${name} is empty, and nothing is shown about it`);
  }

  const service = await startService({ databaseUrl: database.url, roles: ROLES, sweepMs: 50, retentionDays: 90 });
  t.after(() => service.stop());
  const ask = (method: string, path: string, body?: unknown) => service.ask(method, path, body, { key });
  const read = async (path: string) => {
    const { status, body } = await ask("GET", path);
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
    return body;
  };

  // What waited, was planned or was in the hands of a worker that is gone is told; what was told is still there.
  const titles = ["read before", "waiting", "scheduled", "Hello Ada", "claimed", "tick", "reminder"].sort();
  await until(async () => {
    const items = (await read("/v1/inbox/ada")).data.map(({ title }: { title: string }) => title).sort();
    return titles.every((title) => items.includes(title)) ? (assert.deepEqual(items, titles) ?? true) : undefined;
  });
  assert.equal((await ask("POST", "/v1/dead-letters/requeue", { ids: [failed] })).body.requeued, 1);
  await until(async () => ((await read(`/v1/notifications/${failed}`)).status === "sent" ? true : undefined));

  // Reports find what was sent before.
  await db.query(
    "insert into carillon.reports (provider, report_id, receipt, kind, at) values ('mail', 'new', 'r1', 'delivered', now())",
  );
  await until(async () => ((await read(`/v1/notifications/${sent}`)).status === "delivered" ? true : undefined));

  // The same request with the same key is the same notification, through HTTP and through SQL.
  const replayed = await service.ask("POST", "/v1/notifications", waiting, {
    key,
    headers: { "idempotency-key": "a key" },
  });
  assert.equal(replayed.status, 200, JSON.stringify(replayed.body));
  const { rows } = await db.query("select carillon.send($1) as id", [{ ...waiting, idempotencyKey: "a key" }]);
  assert.equal(rows[0].id, replayed.body.notificationId);

  for (const path of ["schedules/tick", "schedules/tick/runs", "reminders/event", "templates/greeting", "suppressions"])
    await read(`/v1/${path}`);
  assert.equal((await ask("PUT", "/v1/users/ada/devices/token", { platform: "android" })).status, 200);
  assert.equal((await read("/v1/users/ada/devices")).data.length, 1);
  await until(async () => {
    const old = await db.query(
      "select from carillon.notifications where id < carillon.first_id(now() - interval '91 days')",
    );
    return old.rowCount === 0 ? true : undefined;
  });
  assert.equal((await ask("GET", "/health")).body.status, "healthy");
});
