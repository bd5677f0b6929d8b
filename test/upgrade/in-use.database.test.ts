// A database of version 0.2.0 in use, made by that version itself: rows in every table and work at every stage. It is brought up
// while a worker of the old version goes on; nothing is lost, nothing is sent twice, everything goes on.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import pg from "pg";
import { openStream } from "../support/event-stream.ts";
import { keptAhead } from "../support/planned.ts";
import { type ServiceProcess, sandboxFor } from "../support/process.ts";
import { ADMIN_KEY } from "../support/service.ts";
import { until } from "../support/until.ts";
import { released } from "./released.ts";
import { inbox, inMs, openWorld, type Talk, talkTo, type World } from "./world.ts";

const HOUR = 3_600_000;
const RECIPIENTS = 300;
const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });

/** Everything that can be asked for, and work that has ended. */
async function fill({ must, send, hook, ends, url }: Talk, { receiver }: World) {
  const mine = await must("POST", "/v1/keys", { name: "mine", scopes: ["admin"] });
  const rival = await must("POST", "/v1/keys", { name: "rival's", tenant: "rival", scopes: ["admin"] });
  const account = { type: "sendgrid", from: "rival@example.com", apiKey: "SG.rival" };
  await must("PUT", "/v1/providers/mail", account, rival.key);
  await must("PUT", "/v1/templates/greeting", { channel: "inbox", name: "g", content: { title: "Hello {{ name }}" } });
  await must("PUT", "/v1/users/ada/devices/token", { platform: "android" });
  await must("PUT", "/v1/suppressions/gone@example.com", {});
  await must("POST", "/v1/inbox/ada/tokens", { expiresInSeconds: 3600 });

  const ended = {
    sent: await hook("/ok", "was sent"),
    failed: await hook("/refuse", "was refused"),
    mailed: await send({
      channel: "email",
      recipient: { email: "a@b.co" },
      content: { subject: "s", textBody: "mailed" },
    }),
    read: await send(inbox("read before")),
    shown: await send({ channel: "sms", recipient: { phone: "+33612345678" }, content: { body: "for developers" } }),
    cancelled: await send({ ...inbox("cancelled"), scheduledFor: inMs(HOUR) }),
  };
  await must("POST", `/v1/notifications/${ended.cancelled}/cancel`);
  for (const id of [ended.sent, ended.mailed, ended.read, ended.shown]) await ends(id, "sent");
  await ends(ended.failed, "failed");
  const stream = await openStream(`${url}/v1/inbox/ada/stream`, { authorization: `Bearer ${ADMIN_KEY}` });
  const { id: position = "" } = await stream.next("unread");
  stream.close();
  await must("POST", "/v1/inbox/ada/read-all", {});

  // Nobody listens there: its breaker opens.
  for (let n = 0; n < 30; n += 1) {
    const nowhere = {
      channel: "webhook",
      recipient: { webhookUrl: "http://127.0.0.1:9/" },
      content: { body: "nobody" },
    };
    await send({ ...nowhere, retryPolicy: { maxAttempts: 100 } });
  }
  await must("PUT", "/v1/schedules/second", { every: "PT1S", notification: inbox("tick", "clock") });
  await must("PUT", "/v1/schedules/yearly", { cron: "0 0 1 1 *", notification: inbox("yearly", "clock") });
  await must("PUT", "/v1/reminder-scopes/guild:1", { before: ["PT1H"] });
  await must("PUT", "/v1/reminders/planned", {
    at: inMs(90 * 24 * HOUR),
    scopes: ["guild:1"],
    notification: inbox("far"),
  });
  await must("PUT", "/v1/reminder-scopes/guild:1", { before: ["PT1H", "P1D"] });
  await until(async () => ((await must("GET", "/v1/schedules/second/runs")).data.length > 1 ? true : undefined));
  await receiver.arrived("was sent");
  return { ...ended, key: mine.key as string, position };
}

/** What will be going on when the version changes. */
async function begin({ must, send, hook }: Talk) {
  const work = {
    keyed: await send({ ...inbox("keyed"), idempotencyKey: "a key" }),
    down: await hook("/down", "was put off", { retryPolicy: { maxAttempts: 100, maxBackoffMs: 1000 } }),
    soon: await send({ ...inbox("soon"), scheduledFor: inMs(8_000) }),
    far: await send({ ...inbox("far off"), scheduledFor: inMs(24 * HOUR) }),
    expiring: await send({ ...inbox("too late"), scheduledFor: inMs(24 * HOUR) }),
    filled: await send({
      channel: "inbox",
      recipient: { userId: "ada" },
      content: { templateId: "greeting", variables: { name: "Ada" } },
      scheduledFor: inMs(8_000),
    }),
  };
  await keptAhead({ leadMs: 8_000, beforeMs: HOUR }, (at) =>
    must("PUT", "/v1/reminders/soon", { at, before: ["PT1H"], notification: inbox("reminded") }),
  );
  return work;
}

/** Stops a notice half-way: whoever would send its next chunk finds it held by us. */
async function holdBroadcast({ must }: Talk, { env }: World): Promise<() => Promise<void>> {
  const recipients = Array.from({ length: RECIPIENTS }, (_, n) => ({ userId: `crowd-${n}` }));
  const notification = { channel: "inbox", recipients, content: { title: "crowd", body: "x".repeat(40_000) } };
  await keptAhead({ leadMs: 500, beforeMs: HOUR }, (at) =>
    must("PUT", "/v1/reminders/crowd", { at, before: ["PT1H"], notification }),
  );
  const client = new pg.Client(env.DATABASE_URL);
  client.on("error", () => undefined);
  await client.connect();
  await until(async () => {
    await client.query("begin");
    const { rows } = await client.query("select reached from carillon.broadcasts for update");
    if (rows[0]?.reached > 0 && rows[0].reached < RECIPIENTS) return true;
    await client.query("rollback");
  });
  return () => client.end();
}

async function report(to: ServiceProcess, receipt: string): Promise<void> {
  const timestamp = Math.floor(Date.now() / 1000);
  const raw = JSON.stringify([
    { event: "delivered", sg_message_id: `${receipt}.x`, sg_event_id: `d-${receipt}`, email: "a@b.co", timestamp },
  ]);
  const headers = {
    "x-twilio-email-event-webhook-timestamp": String(timestamp),
    "x-twilio-email-event-webhook-signature": sign("sha256", Buffer.from(timestamp + raw), keys.privateKey).toString(
      "base64",
    ),
  };
  const answer = await to.ask("POST", "/v1/providers/mail/events", undefined, { key: null, raw, headers });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
}

async function assertNoTableIsEmpty(db: pg.Pool): Promise<void> {
  const { rows } = await db.query(
    "select relname as name from pg_class where relnamespace = 'carillon'::regnamespace and relkind in ('r', 'p') and not relispartition",
  );
  for (const { name } of rows) {
    const { rowCount } = await db.query(`select from carillon.${name} limit 1`);
    assert.equal(rowCount, 1, `${name} is empty, and nothing is shown about it`);
  }
}

test("a database of 0.2.0 in use is brought up to date: nothing is lost, nothing is doubled, everything goes on", async (t) => {
  const world = await openWorld(t, keys.publicKey);
  const { receiver, db, env } = world;
  const old = await sandboxFor(t, released());
  const first = await old.start(env);
  const before = talkTo(first, receiver);
  const made = await fill(before, world);
  const work = await begin(before);
  await report(first, "sg-later");
  const heldByDead = await before.hook("/hold", "held by the dead", { onAmbiguous: "resend" });
  await receiver.arrived("held by the dead");
  await receiver.arrived("was put off");
  const letGo = await holdBroadcast(before, world);
  await db.query("update carillon.schedule set expires_at = now() + interval '8 s' where id = $1", [work.expiring]);
  const recordsOf = async (talk: Talk) =>
    Promise.all([made.sent, made.failed, made.shown, made.cancelled].map((id) => talk.read(id)));
  const kept = await recordsOf(before);
  await first.end("SIGKILL");
  const queued: string = (await db.query("select carillon.send($1) as id", [inbox("queued")])).rows[0].id;
  await assertNoTableIsEmpty(db);

  // Another process of the old version, which lives on: it holds a lease when the schema changes under it.
  const living = await old.start({ ...env, CARILLON_ROLES: "api,worker" });
  const heldByLiving = await talkTo(living, receiver).hook("/hold", "held by the living");
  await receiver.arrived("held by the living");
  await letGo();
  const service = await (await sandboxFor(t)).start(env);
  const { must, read, ends } = talkTo(service, receiver);
  receiver.release();
  receiver.mend();

  await ends(heldByLiving, "sent");
  assert.equal(receiver.times("held by the living"), 1, "whoever holds a lease keeps it through the change");
  await ends(heldByDead, "sent");
  assert.equal((await living.end("SIGTERM")).code, 0);
  assert.deepEqual(await recordsOf(talkTo(service, receiver)), kept, "what had ended is what it was");

  for (const id of [queued, work.keyed, work.down, work.soon, work.filled]) await ends(id, "sent");
  assert.ok((await read(work.down)).attempts.length > 1, "those before count");
  await ends(work.expiring, "expired");
  assert.equal((await read(work.far)).status, "pending");
  await must("PATCH", `/v1/notifications/${work.far}`, { scheduledFor: inMs(-1000) });
  await ends(work.far, "sent");
  const replay = await service.ask("POST", "/v1/notifications", { ...inbox("keyed"), idempotencyKey: "a key" });
  assert.deepEqual([replay.status, replay.body.notificationId], [200, work.keyed]);
  await must("POST", `/v1/dead-letters/requeue`, { ids: [made.failed] });
  await until(async () => (receiver.times("was refused") > 1 ? true : undefined));

  // Reports find what the old version has sent, and those that had come before their receipt wait on.
  const { attempts } = await read(made.mailed);
  await report(service, attempts[0].receipt ?? "sg-1");
  await ends(made.mailed, "delivered");
  assert.equal((await db.query("select from carillon.reports where receipt = 'sg-later'")).rowCount, 1);

  const ticks = async () => (await must("GET", "/v1/schedules/second/runs?limit=100")).data.length;
  const soFar = await ticks();
  await until(async () => ((await ticks()) > soFar ? true : undefined));
  assert.ok((await must("GET", "/v1/schedules/yearly")).nextAt > inMs(0));
  await until(async () => ((await must("GET", "/v1/reminders/soon")).plan[0].status === "sent" ? true : undefined));
  assert.deepEqual(
    (await must("GET", "/v1/reminders/planned")).plan.map(({ status }: { status: string }) => status),
    ["planned", "planned"],
  );
  await until(async () => ((await must("GET", "/v1/reminders/crowd")).plan[0].status === "sent" ? true : undefined));
  const crowd = await db.query(
    "select count(*)::int as n, count(distinct user_id)::int as users from carillon.notifications where user_id like 'crowd-%'",
  );
  assert.deepEqual(crowd.rows, [{ n: RECIPIENTS, users: RECIPIENTS }], "each of the crowd once");

  const titles = ["Hello Ada", "far off", "keyed", "queued", "read before", "reminded", "soon"];
  await until(async () => {
    const { data } = await must("GET", "/v1/inbox/ada");
    const found = data.map(({ title }: { title: string }) => title).sort();
    return found.length >= titles.length ? (assert.deepEqual(found, titles) ?? true) : undefined;
  });
  const stream = await openStream(`${service.url}/v1/inbox/ada/stream`, {
    authorization: `Bearer ${ADMIN_KEY}`,
    "last-event-id": made.position,
  });
  assert.equal(JSON.parse((await stream.next("notification")).data).title, "keyed", "a stream goes on where it was");
  stream.close();

  await must("GET", "/v1/notifications", undefined, made.key);
  const ledger = await must("GET", "/v1/ledger");
  assert.equal(ledger.balanced, true, JSON.stringify(ledger));
  assert.equal((await must("GET", "/health")).status, "healthy");
});
