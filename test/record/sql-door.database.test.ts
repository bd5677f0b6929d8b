// Sending from SQL: the same rules, the same words, the caller's own transaction.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import fc from "fast-check";
import pg from "pg";
import { CHANNELS, NotificationRequest } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { faultsOf, type Schema } from "#domain/schema.ts";
import { compile, faultsOfRequest } from "#domain/validate.ts";
import { migrate } from "#store/connection/migrate.ts";
import { contractMigration } from "../support/contract.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres.ts";
import { email } from "../support/service.ts";

let database: FreshDatabase;
let client: pg.Client;
before(async () => {
  database = await freshDatabase();
  await migrate(database.url);
  client = new pg.Client(database.url);
  await client.connect();
});
after(async () => {
  await client.end();
  await database.drop();
});

const send = async (request: unknown, tenant = "default"): Promise<string> => {
  const { rows } = await client.query("select carillon.send($1::jsonb, $2) as id", [JSON.stringify(request), tenant]);
  return rows[0].id;
};
const faultsInSql = async (request: unknown): Promise<Fault[]> =>
  (await client.query("select carillon.faults($1::jsonb) as faults", [JSON.stringify(request)])).rows[0].faults;
const sorted = (faults: Fault[]) => faults.map(({ path, message }) => `${path} ${message}`).sort();

test("a notification sent from SQL is the same as one sent by the other doors", async () => {
  const request = {
    ...email(),
    recipient: { email: "a@b.co", userId: "u" },
    priority: "urgent",
    expiresAt: "2099-01-01T00:00:00Z",
  };
  const id = await send(request);
  const { rows } = await client.query(
    `select r.*, q.priority as lane from carillon.records r join carillon.ready q using (seq) where r.id = $1`,
    [id],
  );
  const [row] = rows;
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/);
  assert.deepEqual(
    [row.tenant, row.channel, row.priority, row.lane, row.user_id, row.status],
    [1, "email", 0, 0, "u", "queued"],
  );
  assert.deepEqual(row.request, request);
  assert.equal(row.expires_at.toISOString(), "2099-01-01T00:00:00.000Z");
  const later = await send({ ...email(), scheduledFor: "2099-01-01T00:00:00Z" });
  assert.equal((await client.query("select from carillon.later where id = $1", [later])).rowCount, 1);
});

test("the id carries the time it was made", async () => {
  const before = Date.now();
  const id = await send(email());
  const ms = Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
  assert.ok(ms >= before - 5 && ms <= Date.now() + 5, `${ms} is about ${before}`);
});

test("rolled back with the caller's transaction means never existed", async () => {
  await client.query("begin");
  const id = await send({ ...email(), idempotencyKey: "rolled back" });
  await client.query("rollback");
  const { rows } = await client.query(
    `select (select count(*) from carillon.notifications where id = $1) + (select count(*) from carillon.ready where id = $1)
       + (select count(*) from carillon.idempotency where key = 'rolled back') as n`,
    [id],
  );
  assert.equal(Number(rows[0].n), 0);
});

test("what is not valid raises an exception with every fault and stores nothing", async () => {
  await assert.rejects(send({ channel: "sms", content: { body: 1 }, x: 1 }), (error: pg.DatabaseError) => {
    assert.equal(error.code, "22023");
    assert.match(error.message, /^VALIDATION_FAILED: /);
    const faults = JSON.parse(error.detail ?? "[]").map(({ path }: Fault) => path);
    assert.deepEqual(faults.sort(), ["/content/body", "/recipient/phone", "/x"]);
    return true;
  });
  await assert.rejects(send(null), /VALIDATION_FAILED/);
  await assert.rejects(send([email()]), /VALIDATION_FAILED/);
  await assert.rejects(send({ ...email(), metadata: { big: "x".repeat(270_000) } }), /262144/);
  await assert.rejects(send(email(), "nobody"), /there is no tenant nobody/);
});

test("idempotency holds across the doors' own transactions", async () => {
  const id = await send({ ...email(1), idempotencyKey: "sql" });
  assert.equal(await send({ ...email(1), idempotencyKey: "sql" }), id);
  await assert.rejects(send({ ...email(2), idempotencyKey: "sql" }), /IDEMPOTENCY_MISMATCH/);
});

test("an application's role needs no more than usage and execute, and sees nothing else", async () => {
  const role = `app_${database.url.match(/test_(\w+)/)?.[1]}`;
  await client.query(`create role ${role}`);
  try {
    await client.query(`set role ${role}`);
    await assert.rejects(send(email()), /permission denied/);
    await client.query("reset role");
    await client.query(`grant usage on schema carillon to ${role}`);
    await client.query(`grant execute on function carillon.send(jsonb, text) to ${role}`);
    await client.query(`set role ${role}`);
    assert.ok(await send(email()));
    await assert.rejects(client.query("select * from carillon.notifications"), /permission denied/);
    await assert.rejects(client.query("select * from carillon.keys"), /permission denied/);
  } finally {
    await client.query("reset role");
    await client.query(`drop owned by ${role}`);
    await client.query(`drop role ${role}`);
  }
});

test("the newest contract in the migrations is that of the code", () => {
  const newest = globSync("migrations/*_contract.sql").sort().at(-1) ?? "";
  assert.equal(
    readFileSync(newest, "utf8"),
    contractMigration(),
    "the schemas have changed: write the next migration with node scripts/contract.ts",
  );
});

// Requests that are nearly right: a full one for any channel, from which some fields are taken away
// and up to two are replaced by something odd.
const good = {
  recipient: {
    userId: "u",
    email: "a@b.co",
    phone: "+33612345678",
    deviceTokens: ["t"],
    slackChannel: "#c",
    webhookUrl: "https://x.y/z",
    locale: "fr-CA",
    timezone: "Europe/Paris",
    metadata: { a: { b: [1] } },
  },
  content: {
    subject: "s",
    from: "a@b.co",
    fromName: "n",
    replyTo: "a@b.co",
    cc: ["a@b.co"],
    bcc: ["a@b.co"],
    headers: { "X-A": "a" },
    textBody: "t",
    title: "t",
    body: "b",
    imageUrl: "http://x",
    badge: 3,
    data: { x: 1 },
    templateId: "t",
    templateVersion: 1,
    attachments: [{ filename: "a", contentType: "a/b", content: "aGk=" }],
  },
  priority: "low",
  scheduledFor: "2096-02-29T23:59:59.999999+14:00",
  expiresAt: "2099-01-01T00:00:00Z",
  idempotencyKey: "k",
  retryPolicy: { maxAttempts: 3, backoffMultiplier: 1.5, maxBackoffMs: 100 },
  onAmbiguous: "hold",
  metadata: { a: 1 },
};
const paths = Object.entries(good).flatMap(([name, value]) => [
  [name],
  ...(typeof value === "object" ? Object.keys(value).map((inner) => [name, inner]) : []),
]);
const places = [
  ...paths,
  ["channel"],
  ["extra"],
  ["recipient", "od/d~"],
  ["content", "attachments", "0", "content"],
  ...["Bcc", "MESSAGE-id", "X/a~", "X a", "X:a", "Ü", "__proto__x"].map((name) => ["content", "headers", name]),
];
const odd = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 1.5, 1e9, "", "x", "a\nb", "é", "🔔".repeat(5), [], {}, ["x"], { x: 1 }),
  fc.constantFrom("2099-02-29T00:00:00Z", "2099-13-01T00:00:00Z", "2001-01-01T00:00:00Z", "2099-01-01 00:00:00"),
  fc.string({ unit: "binary", maxLength: 20 }).filter((text) => !text.includes("\0") && text.isWellFormed()),
);
type Tree = { [name: string]: Tree };

function change(request: Tree, [name = "", ...rest]: string[], value: unknown): void {
  if (rest.length > 0 && request[name] !== null && typeof request[name] === "object")
    change(request[name], rest, value);
  else if (value === undefined) delete request[name];
  else request[name] = value as Tree;
}

const request = fc
  .record({
    channel: fc.constantFrom(...CHANNELS),
    removed: fc.subarray(paths, { maxLength: 12 }),
    replaced: fc.array(fc.tuple(fc.constantFrom(...places), odd), { maxLength: 2 }),
  })
  .map(({ channel, removed, replaced }) => {
    const made = { channel, ...structuredClone(good) } as unknown as Tree;
    for (const path of removed) change(made, path, undefined);
    for (const [path, value] of replaced) change(made, path, structuredClone(value));
    return made;
  });

test("the walk in TypeScript, the walk in SQL and Ajv agree on every request", async () => {
  const ajv = compile(NotificationRequest);
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(request, async (value) => {
      const faults = faultsOfRequest(value, new Date());
      assert.deepEqual(sorted(await faultsInSql(value)), sorted(faults));
      assert.equal(ajv(value).length > 0, faultsOf(NotificationRequest as Schema, value).length > 0);
      if (faults.length > 0) refused++;
    }),
    { numRuns: 1500 },
  );
  assert.ok(refused > 300 && refused < 1500, `${refused} of 1500 were refused: both sides are tried`);
});

test("deep nesting, forbidden names and numbers beyond doubles are refused in SQL as in TypeScript", async () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
  const request = (metadata: unknown) => ({ channel: "console", content: {}, metadata });
  for (const levels of [30, 31, 32, 33, 200]) {
    const value = request({ m: nested(levels) });
    assert.deepEqual(sorted(await faultsInSql(value)), sorted(faultsOfRequest(value, new Date())), `${levels} levels`);
  }
  const poisoned = JSON.parse('{"channel":"console","content":{"data":{"__proto__":{"x":1}}}}');
  assert.deepEqual(sorted(await faultsInSql(poisoned)), sorted(faultsOfRequest(poisoned, new Date())));
  const { rows } = await client.query(
    `select carillon.faults('{"channel":"console","content":{"data":{"n":1e400}}}') as f`,
  );
  assert.deepEqual(rows[0].f, [{ path: "/content/data/n", message: "must be a finite number" }]);
});
