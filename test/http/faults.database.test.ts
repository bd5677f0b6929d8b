// Faults that were asked for: the next sends answer as a provider in trouble would, of that tenant, so many and no more.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "#client/client.ts";
import { DEFAULT_ROUTES } from "#config/channels.ts";
import { ROLES } from "#config/server.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({
    roles: ROLES,
    development: true,
    sendTimeoutMs: 500,
    providers: { dev: { type: "dev" }, first: { type: "dev" }, second: { type: "dev" }, console: { type: "console" } },
    routes: { ...DEFAULT_ROUTES, slack: ["first", "second"] },
  });
});
after(() => service.stop());

const sms = {
  channel: "sms",
  recipient: { phone: "+4917012345" },
  content: { body: "Hi" },
  onAmbiguous: "hold",
} as const;
const retryPolicy = { maxAttempts: 3, maxBackoffMs: 1_000 };
type Made = { id: string; status: string; attempts: { outcome: string; error?: string; provider?: string }[] };
async function becomes(request: object, status: string, key = service.key): Promise<Made> {
  const { body } = await service.ask("POST", "/v1/notifications", request, { key });
  return until(async () => {
    const found = (await service.ask("GET", `/v1/notifications/${body.notificationId}`, undefined, { key })).body;
    return found.status === status ? { id: body.notificationId, ...found } : undefined;
  });
}
const keptOf = async (id: string) => (await ask(service, `/v1/dev/messages?notificationId=${id}`)).data.length;
const inject = (fault: object, key = service.key) => service.ask("POST", "/v1/dev/faults", fault, { key });

test("each fault is what its name says: what was refused is not kept, what lost its answer is", async () => {
  const ends: [fault: string, status: string, outcome: string, kept: number][] = [
    ["refused", "failed", "rejected", 0],
    ["dead-recipient", "failed", "dead-recipient", 0],
    ["hang", "ambiguous", "ambiguous", 0],
    ["lost-answer", "ambiguous", "ambiguous", 1],
  ];
  for (const [fault, status, outcome, kept] of ends) {
    assert.equal((await inject({ channel: "sms", fault })).status, 201);
    const { id, attempts } = await becomes({ ...sms, recipient: { phone: `+49170123${10 + fault.length}` } }, status);
    assert.deepEqual([attempts[0]?.outcome, await keptOf(id)], [outcome, kept], fault);
    assert.match(attempts[0]?.error ?? "", /as was asked for/);
  }
  assert.equal(await keptOf((await becomes(sms, "sent")).id), 1, "then sends go well again");
});

test("the next two are throttled or away, counted, and the third try is kept", async () => {
  for (const fault of ["429", "503"]) {
    const { body } = await inject({ channel: "push", fault, next: 2, retryAfterSeconds: 1 });
    assert.deepEqual([body.next, body.left, body.retryAfterSeconds], [2, 2, 1]);
  }
  const { dev } = createClient({ url: service.url, key: service.key });
  await dev.faults.clear();
  await service.ask("PUT", "/v1/users/u/devices/d", { platform: "android" });
  await dev.faults.inject({ channel: "push", fault: "503", next: 2 });
  const push = { channel: "push", recipient: { userId: "u" }, content: { title: "Hi" }, retryPolicy };
  const { attempts } = await becomes(push, "sent");
  assert.deepEqual(
    attempts.map(({ outcome }) => outcome),
    ["unavailable", "unavailable", "accepted"],
  );
  const [{ left } = { left: -1 }] = (await dev.faults.list()).data;
  assert.equal(left, 0);
});

test("of several providers one can be made to fail, and the next has it", async () => {
  await inject({ provider: "first", fault: "503" });
  const slack = { channel: "slack", recipient: { slackChannel: "C1" }, content: { body: "Hi" } };
  assert.equal((await becomes(slack, "sent")).attempts[0]?.provider, "second");
  assert.equal((await becomes(slack, "sent")).attempts[0]?.provider, "first");
});

test("a fault is the tenant's own, however often it strikes", async () => {
  const theirs = await service.makeKey({ tenant: "unlucky", scopes: ["send", "read"] });
  await inject({ channel: "sms", fault: "503", next: 1_000 }, theirs);
  await Promise.all(Array.from({ length: 20 }, () => service.ask("POST", "/v1/notifications", sms, { key: theirs })));
  const { data } = (await service.ask("GET", "/v1/dev/faults", undefined, { key: theirs })).body;
  assert.deepEqual(
    [data.length, (await ask(service, "/v1/dev/faults")).data.some(({ next }: { next: number }) => next === 1_000)],
    [1, false],
  );
  await until(async () => {
    const [fault] = (await service.ask("GET", "/v1/dev/faults", undefined, { key: theirs })).body.data;
    return fault.left < 1_000 ? true : undefined;
  });
  assert.equal((await becomes(sms, "sent")).attempts.length, 1, "no breaker of theirs holds up anybody else");
  await service.ask("DELETE", "/v1/dev/faults", undefined, { key: theirs });
});

test("what is no fault is refused, and so is more than so many of them; where it is not development there are none", async (t) => {
  const bad = [{}, { fault: "503" }, { channel: "sms", fault: "500" }, { channel: "sms", fault: "503", next: 0 }];
  const worse = [
    { channel: "sms", fault: "hang", retryAfterSeconds: 5 },
    { provider: "console", fault: "503" },
  ];
  for (const fault of [...bad, ...worse, { provider: "nobody", fault: "503" }]) {
    assert.equal((await inject(fault)).status, 422, JSON.stringify(fault));
  }
  const key = await service.makeKey({ tenant: "many", scopes: ["send", "read"] });
  const answers = new Map<number, number>();
  // A few at a time: who waits too long for a connection is told to come again.
  for (let made = 0; made < 102; made += 6) {
    const some = await Promise.all(Array.from({ length: 6 }, () => inject({ channel: "sms", fault: "503" }, key)));
    for (const { status } of some) answers.set(status, (answers.get(status) ?? 0) + 1);
  }
  assert.deepEqual(Object.fromEntries(answers), { 201: 100, 422: 2 });
  const production = await startService();
  t.after(production.stop);
  for (const method of ["GET", "POST", "DELETE"]) {
    const body = method === "POST" ? { channel: "sms", fault: "503" } : undefined;
    assert.equal((await production.ask(method, "/v1/dev/faults", body)).status, 404);
  }
});
