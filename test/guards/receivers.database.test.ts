// What one tenant's receiver says or does is about itself: neither another tenant nor another receiver waits for it.

import assert from "node:assert/strict";
import { createECDH, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import webpush from "web-push";
import type { Config } from "#config/read.ts";
import { tellPause } from "#store/breakers.ts";
import type { StandIn } from "../support/scripted.ts";
import { type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const providers: Config["providers"] = {
  hooks: { type: "webhook" },
  chat: { type: "slack" },
  browsers: { type: "webpush", ...webpush.generateVAPIDKeys(), subject: "mailto:ringer@bells.example" },
};
const routes = { webhook: "hooks", slack: "chat", push: "browsers" } as Config["routes"];
const limits: Config["limits"] = {
  // An account's limit is everybody's: no receiver may shut it.
  providers: { chat: { account: [{ per: "second", most: 10_000 }] } },
  tenant: [],
  recipient: [],
};
const shared = { providers, routes, limits, allowAddresses: ["127.0.0.0/8"] };

let service: Service;
let worker: Service;
let good: StandIn;
const keys: { [tenant: string]: string } = {};

const startWorker = () => startService({ ...shared, roles: ["worker", "scheduler"], databaseUrl: service.databaseUrl });

before(async () => {
  service = await startService({ ...shared, roles: ["api"] });
  worker = await startWorker();
  good = await startStandIn();
  good.answer({ status: 201 });
  for (const tenant of ["hostile", "other"]) keys[tenant] = await service.makeKey({ tenant, scopes: ["send", "read"] });
});
after(async () => {
  await worker.stop();
  await service.stop();
  await good.close();
});

let devices = 0;
/** Registers a browser whose push service is at that URL. */
async function browserAt(tenant: string, url: string): Promise<string> {
  const ecdh = createECDH("prime256v1");
  ecdh.generateKeys();
  const subscription = {
    endpoint: `${url}/push`,
    keys: { p256dh: ecdh.getPublicKey("base64url"), auth: randomBytes(16).toString("base64url") },
  };
  const token = `browser-${++devices}`;
  // In SQL, as the API takes https only.
  await service.db.query(
    `insert into carillon.devices (tenant, token, user_id, platform, subscription)
     select id, $2, $2, 'web', $3 from carillon.tenants where name = $1`,
    [tenant, token, subscription],
  );
  return token;
}

type To = (tenant: string, url: string) => object | Promise<object>;
const CHANNELS: [channel: string, to: To][] = [
  ["webhook", (_tenant, url) => ({ webhookUrl: `${url}/hook` })],
  ["slack", (_tenant, url) => ({ webhookUrl: `${url}/services/T0/B0/x` })],
  ["push", async (tenant, url) => ({ userId: await browserAt(tenant, url) })],
];

async function send(tenant: string, channel: string, recipient: object, count = 1): Promise<string[]> {
  const notification = { channel, recipient, content: { title: "t", body: "b" }, retryPolicy: { maxAttempts: 1 } };
  const notifications = Array.from({ length: count }, () => notification);
  const key = keys[tenant] ?? "";
  const { status, body } = await service.ask("POST", "/v1/notifications/batch", { notifications }, { key });
  assert.ok(status < 300, JSON.stringify(body));
  return body.results.map(({ notificationId }: { notificationId: string }) => notificationId);
}
const read = async (tenant: string, id: string) =>
  (await service.ask("GET", `/v1/notifications/${id}`, undefined, { key: keys[tenant] ?? "" })).body;
const wasPostponed = ({ events }: { events: { type: string }[] }) => events.some(({ type }) => type === "postponed");

/** Sends to it until one is held back. */
const isHeld = (tenant: string, channel: string, recipient: object) =>
  until(async () => {
    const [id = ""] = await send(tenant, channel, recipient);
    const record = await until(async () => {
      const found = await read(tenant, id);
      return found.attempts.length > 0 || wasPostponed(found) ? found : undefined;
    });
    return wasPostponed(record) ? true : undefined;
  });

async function assertGoesAtOnce(tenant: string, channel: string, recipient: object): Promise<void> {
  const [id = ""] = await send(tenant, channel, recipient);
  const record = await until(async () => {
    const found = await read(tenant, id);
    return found.attempts.length > 0 || wasPostponed(found) ? found : undefined;
  });
  assert.ok(!wasPostponed(record), `${tenant}'s ${channel} waits: ${JSON.stringify(record.events)}`);
  await until(async () => ((await read(tenant, id)).status === "sent" ? true : undefined));
}

const shown = async (tenant: string, name: string) => {
  const { body } = await service.ask("GET", "/v1/providers", undefined, { key: keys[tenant] ?? "" });
  return body.data.find((one: { name: string }) => one.name === name);
};

for (const [channel, to] of CHANNELS) {
  test(`${channel}: a receiver that asks for an hour's pause gets one, and nobody else does`, async (t) => {
    const busy = await startStandIn();
    t.after(() => busy.close());
    busy.answer({ status: 429, headers: { "retry-after": "3600" } });
    const theirs = await to("hostile", busy.url);
    await isHeld("hostile", channel, theirs);
    await assertGoesAtOnce("other", channel, await to("other", good.url));
    await assertGoesAtOnce("hostile", channel, await to("hostile", good.url));
    const name = String(routes[channel as keyof typeof routes]);
    const { breaker, receivers } = await until(async () => {
      const found = await shown("hostile", name);
      return found.receivers.length > 0 ? found : undefined;
    });
    assert.deepEqual([breaker.state, receivers[0].origin], ["closed", busy.url]);
    assert.ok(receivers[0].pausedMs > 3_000_000);
    assert.deepEqual((await shown("other", name)).receivers, [], "whom another tenant writes to is not shown");

    await worker.stop();
    worker = await startWorker();
    // What the database knows has come through when this one waits again.
    await isHeld("hostile", channel, theirs);
    await assertGoesAtOnce("other", channel, await to("other", good.url));
    await assertGoesAtOnce("hostile", channel, await to("hostile", good.url));
  });

  test(`${channel}: a receiver that refuses 25 connections is asked no more, and everybody else is`, async () => {
    const gone = await startStandIn();
    await gone.close();
    const theirs = await to("hostile", gone.url);
    await send("hostile", channel, theirs, 25);
    await isHeld("hostile", channel, theirs);
    for (let n = 0; n < 3; n++) {
      await assertGoesAtOnce("other", channel, await to("other", good.url));
      await assertGoesAtOnce("hostile", channel, await to("hostile", good.url));
    }
  });
}

test("another tenant's word about the same receiver is not heard", async (t) => {
  const shy = await startStandIn();
  t.after(() => shy.close());
  shy.answer(({ path }) => (path === "/mine" ? { status: 200 } : { status: 429, headers: { "retry-after": "3600" } }));
  await isHeld("hostile", "webhook", { webhookUrl: `${shy.url}/theirs` });
  await assertGoesAtOnce("other", "webhook", { webhookUrl: `${shy.url}/mine` });
});

test("explain tells of the receiver that a message would go to", async () => {
  const gone = await startStandIn();
  await gone.close();
  const recipient = { webhookUrl: `${gone.url}/hook` };
  await send("hostile", "webhook", recipient, 25);
  const explained = async (tenant: string) => {
    const body = { channel: "webhook", recipient, content: { body: "b" } };
    const { body: told } = await service.ask("POST", "/v1/explain", body, { key: keys[tenant] ?? "" });
    return told.route[0].breaker;
  };
  await until(async () => ((await explained("hostile")) === "closed" ? undefined : true));
  assert.equal(await explained("other"), "closed");
});

test("receivers are counted in the metrics, never named", async () => {
  const { body } = await worker.ask("GET", "/metrics");
  assert.match(body, /notification_receiver_breakers\{state="open"\} \d/);
  assert.doesNotMatch(body, /127\.0\.0\.1/);
});

test("of a tenant's receivers the workers tell each other about a hundred, and of an account always", async () => {
  const tell = (account: string, tenant?: number) =>
    tellPause(service.db, { account, tenant, ms: 3_600_000, worker: 99_999 });
  const count = async () => {
    const { rows } = await service.db.query(
      "select tenant, count(*)::int from carillon.breakers group by 1 order by 1",
    );
    return rows.filter(({ tenant }) => tenant === null || tenant > 1_000).map((row) => [row.tenant, row.count]);
  };
  for (let n = 0; n < 120; n++) await tell(`hooks@1001 https://${n}.example`, 1_001);
  await tell("hooks@1001 https://7.example", 1_001);
  await tell("hooks@1002 https://7.example", 1_002);
  await tell("browsers");
  const counts = await count();
  assert.deepEqual(counts.slice(0, 2), [
    [1_001, 100],
    [1_002, 1],
  ]);
  assert.ok((counts[2]?.[1] ?? 0) >= 1);
  await service.db.query("delete from carillon.breakers where tenant > 1000 or account = 'browsers'");
});
