// Nobody waits for a stranger: with a worker full of sends that do not answer, what comes before them is begun, and what is another's.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Config } from "#config/read.ts";
import type { StandIn } from "../support/scripted.ts";
import { type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";
import { until } from "../support/until.ts";

const CONCURRENCY = 16;
/** More than a worker holds, by far. */
const MANY = 400;

let service: Service;
/** Everywhere in 127.0.0.0/8, so that it is as many receivers as are wanted. */
let hosts: StandIn;
const mailed: string[] = [];
const keys: { [tenant: string]: string } = {};

beforeEach(async () => {
  service = await startService({
    roles: ["api", "worker", "scheduler"],
    providers: {
      hooks: { type: "webhook" },
      mail: { type: "test", onSend: ({ request }) => void mailed.push(request.recipient?.email ?? "") },
    },
    routes: { webhook: "hooks", email: "mail" } as Config["routes"],
    allowAddresses: ["127.0.0.0/8"],
    concurrency: CONCURRENCY,
    sendTimeoutMs: 600_000,
    drainMs: 0,
  });
  hosts = await startStandIn({ host: "0.0.0.0" });
  hosts.answer({ status: 200 });
  for (const tenant of ["hog", "other"]) keys[tenant] = await service.makeKey({ tenant, scopes: ["send", "read"] });
});
afterEach(async () => {
  await hosts.close();
  await service.stop();
});

const GOOD = "127.0.0.1";
const SILENT = "127.0.0.2";
const hostOf = ({ headers }: StandIn["received"][number]) => headers.host?.split(":")[0] ?? "";
const arrivals = (host: string) => hosts.received.filter((one) => hostOf(one) === host).length;
const arrived = (host: string, count: number) => until(async () => (arrivals(host) >= count ? true : undefined));

async function submit(tenant: string, notifications: object[]): Promise<void> {
  const key = keys[tenant] ?? "";
  const { status, body } = await service.ask("POST", "/v1/notifications/batch", { notifications }, { key });
  assert.ok(status < 300, JSON.stringify(body));
}

function hook(host: string, priority: string) {
  const webhookUrl = `http://${host}:${new URL(hosts.url).port}/hook`;
  return { channel: "webhook", recipient: { webhookUrl }, content: { body: "b" }, priority };
}

const send = (tenant: string, host: string, priority: string, count = 1) =>
  submit(
    tenant,
    Array.from({ length: count }, () => hook(host, priority)),
  );

async function mail(tenant: string, name: string): Promise<void> {
  const email = `${name}@example.com`;
  await submit(tenant, [{ channel: "email", recipient: { email }, content: { subject: "s", textBody: "b" } }]);
  await until(async () => (mailed.includes(email) ? true : undefined));
}

/** These do not answer from now on. Before that they did, so that they get as many at once as any. */
async function silence(tenant: string, ...silent: string[]): Promise<void> {
  for (const host of silent) await send(tenant, host, "normal");
  await until(async () => {
    const { rows } = await service.db.query("select count(*)::int from carillon.events where to_status = 'sent'");
    return rows[0].count >= silent.length ? true : undefined;
  });
  hosts.answer((one) => (silent.includes(hostOf(one)) ? "hang" : { status: 200 }));
}

test("with every slot of a tenant held by sends that do not answer, and all that is claimed its own, another's are begun", async () => {
  await silence("hog", SILENT);
  await send("hog", SILENT, "normal", MANY);
  await arrived(SILENT, 1 + CONCURRENCY);
  await send("other", GOOD, "normal", 20);
  await arrived(GOOD, 20);
});

test("lower work goes on beside a tenant's urgent sends that do not answer", async () => {
  await silence("hog", SILENT);
  await send("hog", SILENT, "urgent", MANY);
  await arrived(SILENT, 1 + CONCURRENCY);
  await send("other", GOOD, "low", 20);
  await arrived(GOOD, 20);
});

test("with every slot held by sends that do not answer, urgent and high ones are begun, those of the same tenant too", async () => {
  await silence("hog", SILENT);
  await send("hog", SILENT, "normal", MANY);
  await arrived(SILENT, 1 + CONCURRENCY);
  await send("hog", GOOD, "urgent");
  await arrived(GOOD, 1);
  await send("other", GOOD, "high");
  await arrived(GOOD, 2);
});

test("a mail is begun while a tenant's webhooks hang at every host, its own and another's", async () => {
  const silent = Array.from({ length: 3 }, (_, n) => `127.0.1.${n + 1}`);
  await silence("hog", ...silent);
  await submit(
    "hog",
    silent.flatMap((host) => Array.from({ length: 50 }, () => hook(host, "normal"))),
  );
  await until(async () => (hosts.received.length >= silent.length + CONCURRENCY ? true : undefined));
  await mail("hog", "own");
  await mail("other", "another");
});

test("hosts that never answered do not fill a worker: all that do get theirs, tried before or not", async () => {
  const all = Array.from({ length: 60 }, (_, n) => `127.0.2.${n + 1}`);
  const silent = all.filter((_, n) => n % 10 === 3);
  hosts.answer((one) => (silent.includes(hostOf(one)) ? "hang" : { status: 200 }));
  for (let round = 0; round < 2; round++)
    await submit(
      "hog",
      all.map((host) => hook(host, "normal")),
    );
  for (const host of all) if (!silent.includes(host)) await arrived(host, 2);
  assert.ok(
    silent.every((host) => arrivals(host) <= 1),
    "of those that hang each got one",
  );
});
