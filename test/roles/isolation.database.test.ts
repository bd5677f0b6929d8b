// Nobody waits for a stranger: with a worker full of sends that do not answer, what comes before them is begun.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Config } from "#config/read.ts";
import type { StandIn } from "../support/scripted.ts";
import { type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";

const CONCURRENCY = 4;
/** More than a worker holds, by far. */
const MANY = 400;

let service: Service;
let silent: StandIn;
let good: StandIn;
const keys: { [tenant: string]: string } = {};

beforeEach(async () => {
  service = await startService({
    roles: ["api", "worker", "scheduler"],
    providers: { hooks: { type: "webhook" } },
    routes: { webhook: "hooks" } as Config["routes"],
    allowAddresses: ["127.0.0.0/8"],
    concurrency: CONCURRENCY,
    sendTimeoutMs: 600_000,
    drainMs: 0,
  });
  [silent, good] = await Promise.all([startStandIn(), startStandIn()]);
  silent.answer("hang");
  good.answer({ status: 200 });
  for (const tenant of ["hog", "other"]) keys[tenant] = await service.makeKey({ tenant, scopes: ["send", "read"] });
});
afterEach(async () => {
  await Promise.all([silent.close(), good.close()]);
  await service.stop();
});

async function send(tenant: string, to: StandIn, priority: string, count = 1): Promise<void> {
  const notification = {
    channel: "webhook",
    recipient: { webhookUrl: `${to.url}/hook` },
    content: { body: "b" },
    priority,
  };
  const notifications = Array.from({ length: count }, () => notification);
  const { status } = await service.ask(
    "POST",
    "/v1/notifications/batch",
    { notifications },
    { key: keys[tenant] ?? "" },
  );
  assert.ok(status < 300);
}

test("with every slot of a tenant held by sends that do not answer, and all that is claimed its own, another's are begun", async () => {
  await send("hog", silent, "normal", MANY);
  await silent.arrived(CONCURRENCY);
  await send("other", good, "normal", 20);
  await good.arrived(20);
});

test("lower work goes on beside a tenant's urgent sends that do not answer", async () => {
  await send("hog", silent, "urgent", MANY);
  await silent.arrived(CONCURRENCY);
  await send("other", good, "low", 20);
  await good.arrived(20);
});

test("with every slot held by sends that do not answer, urgent and high ones are begun, those of the same tenant too", async () => {
  await send("hog", silent, "normal", MANY);
  await silent.arrived(CONCURRENCY);
  await send("hog", good, "urgent");
  await good.arrived(1);
  await send("other", good, "high");
  await good.arrived(2);
});
