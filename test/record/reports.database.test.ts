// Reports of tenants' own accounts: whoever signed one speaks of what went through his account, and of nothing else.

import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { after, before, test } from "node:test";
import pg from "pg";
import type { Config } from "#config/read.ts";
import { migrate } from "#store/connection/migrate.ts";
import { chain } from "../support/chain.ts";
import { freshDatabase } from "../support/postgres.ts";
import type { StandIn } from "../support/scripted.ts";
import { email, type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const ours = generateKeyPairSync("ec", { namedCurve: "P-256" });
const theirs = generateKeyPairSync("ec", { namedCurve: "P-256" });
const shown = (key: KeyObject) => key.export({ type: "spki", format: "der" }).toString("base64");

let sendgrid: StandIn;
let service: Service;
let rival: string;
let rivalId: number;

before(async () => {
  sendgrid = await startStandIn();
  let messages = 0;
  sendgrid.answer(() => ({ status: 202, headers: { "x-message-id": `sg-${++messages}` } }));
  const mail = { type: "sendgrid", from: "bell@example.com", apiKey: "SG.deployment" } as const;
  const routes = { email: "mail" } as Config["routes"];
  service = await startService({
    roles: ["api", "worker", "scheduler", "keeper"],
    providers: { mail: { ...mail, apiUrl: sendgrid.url, webhookPublicKey: shown(ours.publicKey) } },
    routes,
    secretKeys: [randomBytes(32)],
    sweepMs: 200,
  });
  rival = await service.makeKey({ tenant: "rival", scopes: ["admin"] });
  const account = { ...mail, apiKey: "SG.rival", webhookPublicKey: shown(theirs.publicKey) };
  assert.equal((await service.ask("PUT", "/v1/providers/mail", account, { key: rival })).status, 204);
  const { rows } = await service.db.query("select id from carillon.tenants where name = 'rival'");
  rivalId = rows[0].id;
});
after(async () => {
  await service.stop();
  await sendgrid.close();
});

async function report(key: KeyObject, query: string, events: object[]) {
  const raw = JSON.stringify(events);
  const at = String(Math.floor(Date.now() / 1000));
  const signature = sign("sha256", Buffer.from(at + raw), key).toString("base64");
  const headers = {
    "x-twilio-email-event-webhook-timestamp": at,
    "x-twilio-email-event-webhook-signature": signature,
  };
  const { status } = await service.ask("POST", `/v1/providers/mail/events${query}`, undefined, {
    key: null,
    raw,
    headers,
  });
  return status;
}
const bounce = (receipt: string, address: string, id = `bounce-${receipt}`) => ({
  event: "bounce",
  type: "bounce",
  sg_message_id: `${receipt}.filter`,
  sg_event_id: id,
  email: address,
  timestamp: Math.floor(Date.now() / 1000),
});
const read = async (id: string, key?: string) =>
  (await service.ask("GET", `/v1/notifications/${id}`, undefined, key === undefined ? {} : { key })).body;
/** Whoever comes first applies a report: the request that brought it, or the keeper, which that does not wait for. */
const fails = (id: string, key?: string) =>
  until(async () => {
    const found = await read(id, key);
    return found.status === "failed" ? found : undefined;
  });
const suppressed = async (key?: string): Promise<string[]> => {
  const { body } = await service.ask("GET", "/v1/suppressions", undefined, key === undefined ? {} : { key });
  return body.data.map(({ address }: { address: string }) => address);
};
/** To somebody whose address nobody reports: what bounced once is sent nothing more, as soon as a worker has heard of it. */
async function sentMail(recipient = { email: "mia@example.com" }): Promise<{ id: string; receipt: string }> {
  const { body } = await service.ask("POST", "/v1/notifications", { ...email(), recipient });
  const record = await until(async () => {
    const found = await read(body.notificationId);
    return found.status === "sent" ? found : undefined;
  });
  const { detail } = record.events.find(({ type }: { type: string }) => type === "attempt");
  return { id: body.notificationId, receipt: detail.receipt };
}
/** As if it had gone out with the rival's own account. */
async function sentByRival(receipt: string): Promise<string> {
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const { body } = await service.ask("POST", "/v1/notifications", { ...email(), scheduledFor: later }, { key: rival });
  const id = body.notificationId;
  await service.db.query("delete from carillon.later where id = $1", [id]);
  await service.db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status) values ($1, $2, 'attempt', 'processing', 'sent')`,
    [id, rivalId],
  );
  await service.db.query(
    "insert into carillon.receipts (provider, owner, receipt, tenant, notification_id) values ('mail', $1, $2, $1, $3)",
    [rivalId, receipt, id],
  );
  return id;
}

test("a report signed by one tenant moves nobody else's notification and suppresses nobody else's address", async () => {
  const { id, receipt } = await sentMail();
  assert.equal(await report(theirs.privateKey, "?tenant=rival", [bounce(receipt, "victim@example.com", "e1")]), 200);
  assert.equal(await report(theirs.privateKey, "", [bounce(receipt, "victim@example.com")]), 401, "not with our key");
  // The same event from the deployment's own account: theirs has neither taken its place nor come before it.
  assert.equal(await report(ours.privateKey, "", [bounce(receipt, "ada@example.com", "e1")]), 200);
  const record = await fails(id);
  assert.equal(record.events.filter(({ type }: { type: string }) => type === "bounced").length, 1);
  assert.deepEqual(await suppressed(), ["ada@example.com"]);
  assert.deepEqual(await suppressed(rival), []);
});

test("a report that came before its receipt waits for one of its own account", async () => {
  assert.equal(await report(theirs.privateKey, "?tenant=rival", [bounce("early", "bob@example.com", "e2")]), 200);
  const { id } = await sentMail();
  await service.db.query(
    "insert into carillon.receipts (provider, receipt, tenant, notification_id) values ('mail', 'early', 1, $1)",
    [id],
  );
  const own = await sentByRival("early");
  await fails(own, rival);
  assert.equal((await read(id)).status, "sent");
  assert.deepEqual(await suppressed(rival), ["bob@example.com"]);
  assert.ok(!(await suppressed()).includes("bob@example.com"));
});

test("a tenant's own account reports what went through it, and the deployment's key does not speak for it", async () => {
  const id = await sentByRival("own");
  assert.equal(await report(ours.privateKey, "", [bounce("own", "carl@example.com", "e3")]), 200);
  assert.equal((await read(id, rival)).status, "sent");
  assert.equal(await report(theirs.privateKey, "?tenant=rival", [bounce("own", "carl@example.com", "e3")]), 200);
  await fails(id, rival);
});

// PostgreSQL lowers letters by the database's collation: under C not beyond ASCII, under others a last sigma as any other.
for (const [address, lowered] of [
  ["JÖRG@example.com", "jörg@example.com"],
  ["ΝΙΚΟΣ@example.com", "νικος@example.com"],
] as const) {
  test(`what bounced as ${address} is suppressed in whatever case, whatever the database's collation`, async () => {
    const { receipt } = await sentMail({ email: address });
    assert.equal(await report(ours.privateKey, "", [bounce(receipt, address, `case-${lowered}`)]), 200);
    await until(async () => ((await suppressed()).includes(lowered) ? true : undefined));
    for (const spelling of [address, lowered]) {
      const { body } = await service.ask("POST", "/v1/explain", { ...email(), recipient: { email: spelling } });
      assert.equal(body.suppressed, "bounce", spelling);
    }
    const path = `/v1/suppressions/${encodeURIComponent(address)}`;
    assert.equal((await service.ask("DELETE", path)).status, 204);
  });
}

test("a report that cannot be stored keeps none of those beside it out", async () => {
  const { id, receipt } = await sentMail();
  const odd = [
    { ...bounce("x", "a@example.com", "odd-1"), reason: `${"x".repeat(298)}🔔🔔` },
    { ...bounce("x", "a@example.com", "odd-2"), reason: "half \ud83d", status: "5.1\0" },
    { ...bounce("x", `${"a".repeat(5_000)}@example.com`, "odd-3") },
    { ...bounce("x", "half \ud83d@example.com", "odd-6") },
    { ...bounce("x", "a@example.com", "odd-4"), timestamp: Number.MAX_SAFE_INTEGER },
    { ...bounce("x\0", "a@example.com", "odd-5") },
    { ...bounce("x", "a@example.com", randomBytes(4_000).toString("hex")) },
  ];
  assert.equal(await report(ours.privateKey, "", [...odd, bounce(receipt, "fritz@example.com", "good")]), 200);
  await fails(id);
});

test("reports of messages that nobody knows are kept up to a number, and those of known ones even then", async () => {
  await service.db.query(
    `insert into carillon.reports (provider, owner, report_id, receipt, kind, at)
     select 'mail', $1, 'unknown-' || n, 'unknown-' || n, 'failed', now() from generate_series(1, 10000) n`,
    [rivalId],
  );
  const id = await sentByRival("known");
  const events = [bounce("nobody's", "dora@example.com", "e4"), bounce("known", "dora@example.com", "e5")];
  assert.equal(await report(theirs.privateKey, "?tenant=rival", events), 200);
  await fails(id, rival);
  const { rows } = await service.db.query("select report_id from carillon.reports where report_id in ('e4', 'e5')");
  assert.deepEqual(rows, [{ report_id: "e5" }]);
  const { receipt } = await sentMail();
  assert.equal(await report(ours.privateKey, "", [bounce(`early-${receipt}`, "emil@example.com", "e6")]), 200);
  const kept = await service.db.query("select from carillon.reports where report_id = 'e6'");
  assert.equal(kept.rowCount, 1, "another account has room");
});

test("of what was sent before receipts knew their account, a tenant with an account of its own has used it", async (t) => {
  const { url, drop } = await freshDatabase();
  await migrate(url, chain(13));
  const db = new pg.Client(url);
  await db.connect();
  t.after(async () => {
    await db.end();
    await drop();
  });
  await db.query("insert into carillon.tenants (id, name) overriding system value values (7, 'own')");
  await db.query("insert into carillon.credentials (tenant, provider, sealed) values (7, 'mail', 'x')");
  await db.query(
    `insert into carillon.receipts (provider, receipt, tenant, notification_id)
     select p, p || t, t, gen_random_uuid() from unnest(array[1, 7]) t, unnest(array['mail', 'sms']) p`,
  );
  await migrate(url);
  const { rows } = await db.query("select receipt, owner from carillon.receipts order by receipt");
  assert.deepEqual(
    rows.map(({ receipt, owner }) => [receipt, owner]),
    [
      ["mail1", 0],
      ["mail7", 7],
      ["sms1", 0],
      ["sms7", 0],
    ],
  );
});
