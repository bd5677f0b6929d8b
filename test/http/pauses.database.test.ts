// Pausing and resuming a channel, a provider, a tenant: nothing is lost, nothing is spent, it goes on in order.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Message } from "#channels/channel.ts";
import type { Config } from "#config/read.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

type Send = { id: string; provider: string; attempt: number };
const sends: Send[] = [];
const watched = (provider: string) => ({
  type: "test" as const,
  latencyMs: 20,
  onSend: ({ notificationId: id, attempt }: Message) => void sends.push({ id, provider, attempt }),
});
const providers: Config["providers"] = {
  mail: watched("mail"),
  first: watched("first"),
  second: watched("second"),
  other: watched("other"),
};
const routes: Config["routes"] = {
  email: "mail",
  sms: ["first", "second"],
  slack: "other",
  webhook: "other",
  inbox: "other",
  console: "other",
  push: "other",
  file: "other",
};
const secretKeys: Config["secretKeys"] = [Buffer.alloc(32, 1)];
const shared = { providers, routes, secretKeys };

/** The worker is a process of its own, as far as anybody can tell: it may end and begin anew. */
let service: Service;
let worker: Service;
let strangersKey: string;
const startWorker = (more: Partial<Config> = {}) =>
  startService({
    ...shared,
    // One at a time: a backlog lasts.
    concurrency: 1,
    roles: ["worker", "scheduler", "keeper"],
    sweepMs: 500,
    databaseUrl: service.databaseUrl,
    ...more,
  });
before(async () => {
  service = await startService({ ...shared, roles: ["api"] });
  strangersKey = await service.makeKey({ tenant: "stranger", scopes: ["admin"] });
  worker = await startWorker();
});
after(async () => {
  await worker.stop();
  await service.stop();
});
afterEach(async () => {
  for (const path of ["channels/email", "providers/mail", "providers/first", "providers/second", "tenants/default"])
    assert.equal((await post(`/v1/${path}/resume`)).status, 204);
  sends.length = 0;
});

const content = { subject: "s", textBody: "t", body: "b" };
const recipient = { email: "a@b.co", phone: "+33612345678", slackChannel: "c" };
const post = (path: string, body?: object, key?: string) =>
  service.ask("POST", path, body, key === undefined ? {} : { key });
const pause = async (what: string, more: object = {}) => {
  const { status, body } = await post(`/v1/${what}/pause`, { reason: "a test", ...more });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
async function send(channel: string, count: number, more: object = {}, key = service.key): Promise<string[]> {
  const notifications = Array.from({ length: count }, () => ({ channel, content, recipient, ...more }));
  const { status, body } = await post("/v1/notifications/batch", { notifications }, key);
  assert.ok(status < 300, JSON.stringify(body));
  return body.results.map(({ notificationId }: { notificationId: string }) => notificationId);
}
const read = async (id: string) => (await service.ask("GET", `/v1/notifications/${id}`)).body;
const sent = (ids: readonly string[]) =>
  until(async () => {
    const done = new Set(sends.map(({ id }) => id));
    return ids.every((id) => done.has(id)) ? true : undefined;
  }, 60_000);
const begun = (count: number) => until(async () => (sends.length >= count ? true : undefined), 60_000);
const queue = async () => (await service.ask("GET", "/v1/queue")).body;
/** Nothing of it is in anybody's hands, and whoever claims has claimed once more since it was asked for. */
async function quiet(): Promise<void> {
  const [stranger = ""] = await send("slack", 1, {}, strangersKey);
  await sent([stranger]);
  await until(async () => ((await queue()).processing === 0 ? true : undefined), 60_000);
  sends.splice(
    sends.findIndex(({ id }) => id === stranger),
    1,
  );
}
/** Workers know that nobody carries this channel now. */
const heldBack = (channel: string) =>
  until(async () => {
    const [id = ""] = await send(channel, 1);
    const { status } = await until(async () => {
      const record = await read(id);
      return ["sent", "pending"].includes(record.status) ? record : undefined;
    });
    if (status === "sent") return undefined;
    assert.equal((await post(`/v1/notifications/${id}/cancel`)).status, 200);
    sends.length = 0;
    return true;
  });
async function pauseMail(): Promise<void> {
  await pause("providers/mail");
  await heldBack("email");
}
const allAside = (count: number) =>
  until(async () => {
    const { depth, processing, scheduled } = await queue();
    return depth.normal === 0 && processing === 0 && scheduled === count ? true : undefined;
  }, 60_000);
const order = () => sends.map(({ id }) => id);

for (const [what, kind, name] of [
  ["channels/email", "channel", "email"],
  ["tenants/default", "tenant", "default"],
  ["providers/mail", "provider", "mail"],
] as const) {
  test(`a paused ${kind} begins nothing more; resumed, the whole backlog comes in order, with attempt 1 each, through a restart`, async () => {
    const ids = await send("email", 150);
    await begun(20);
    const paused = await pause(what);
    assert.deepEqual([paused.kind, paused.name, paused.reason], [kind, name, "a test"]);
    await quiet();
    const before = sends.length;
    assert.ok(before < 150, `${before} had begun before the pause held`);

    // What comes meanwhile waits too, and a worker that starts anew knows of the pause.
    const more = await send("email", 5);
    await worker.stop();
    worker = await startWorker();
    const beside = kind === "tenant" ? [] : await send("slack", 1);
    await sent(beside);
    await quiet();
    assert.equal(sends.length, before + beside.length, "only what is not paused went on");
    const { body: ledger } = await service.ask("GET", "/v1/ledger");
    assert.equal(ledger.balanced, true);

    assert.equal((await post(`/v1/${what}/resume`)).status, 204);
    await sent([...ids, ...more]);
    const all = order().filter((id) => !beside.includes(id));
    assert.deepEqual(all, [...ids, ...more], "in order of acceptance, each once");
    assert.ok(sends.every(({ attempt }) => attempt === 1));
    const last = await until(async () => {
      const record = await read(more.at(-1) as string);
      return record.status === "sent" ? record : undefined;
    });
    assert.equal(last.attempts.length, 1);
  });
}

for (const what of ["channels/email", "tenants/default", "providers/mail"]) {
  test(`${what}: a pause with an end ends by itself, and whoever sleeps wakes then`, async () => {
    await worker.stop();
    const end = Date.now() + 4_000;
    const { until: told } = await pause(what, { until: new Date(end).toISOString() });
    assert.equal(Date.parse(told), end);
    // What it finds while it sleeps, it was told of.
    worker = await startWorker({ pollMs: { urgent: 600_000, high: 600_000, normal: 600_000, low: 600_000 } });
    const ids = await send("email", 20);
    await sent(ids);
    assert.ok(Date.now() >= end, "not before");
    // On a busy machine it may end while some are being put aside, and those in hand go first then.
    assert.deepEqual(order().sort(), [...ids].sort(), "each once");
    assert.ok(sends.every(({ attempt }) => attempt === 1));
    const left = await until(async () => {
      const { body } = await service.ask("GET", "/v1/pauses");
      return body.data.length === 0 ? body.data : undefined;
    });
    assert.deepEqual(left, []);
  });
}

test("a paused provider is passed over for the next of its route; with both paused it waits for whichever is resumed first", async () => {
  await pause("providers/first");
  await until(async () => {
    await sent(await send("sms", 1));
    return sends.at(-1)?.provider === "second" ? true : undefined;
  });
  await pause("providers/second", { until: new Date(Date.now() + 3_600_000).toISOString() });
  await heldBack("sms");
  const ids = await send("sms", 30);
  await allAside(30);
  const { status, attempts, events } = await read(ids[0] as string);
  assert.deepEqual([status, attempts.length], ["pending", 0]);
  const notes = events.filter(({ type }: { type: string }) => type === "postponed");
  assert.equal(notes.length, 1, "the record says once that it waits");
  assert.match(notes[0].error, /is paused$/);

  sends.length = 0;
  assert.equal((await post("/v1/providers/first/resume")).status, 204);
  await sent(ids);
  assert.deepEqual(order(), ids);
  assert.ok(sends.every(({ provider, attempt }) => provider === "first" && attempt === 1));
});

test("what waits for a paused provider is cancelled, rescheduled and expires like anything that waits", async () => {
  await pauseMail();
  const [cancelled = "", hurried = "", put = ""] = await send("email", 3);
  const [expiring = ""] = await send("email", 1, { expiresAt: new Date(Date.now() + 2_000).toISOString() });
  await until(async () => ((await read(put)).status === "pending" ? true : undefined));
  assert.equal((await post(`/v1/notifications/${cancelled}/cancel`)).status, 200);
  const far = new Date(Date.now() + 3_600_000).toISOString();
  const moved = await service.ask("PATCH", `/v1/notifications/${put}`, { scheduledFor: far });
  assert.deepEqual([moved.status, moved.body.scheduledFor], [200, far]);
  // The end of the pause is no time of its own: an expiry before it is none that has come too soon.
  const kept = await service.ask("PATCH", `/v1/notifications/${hurried}`, { priority: "urgent", expiresAt: far });
  assert.deepEqual([kept.status, kept.body.priority, kept.body.scheduledFor], [200, "urgent", undefined]);
  await until(async () => ((await read(expiring)).status === "expired" ? true : undefined));
  await until(async () => ((await read(hurried)).status === "pending" ? true : undefined));
  assert.deepEqual(sends, []);

  await post("/v1/providers/mail/resume");
  await sent([hurried]);
  await quiet();
  assert.deepEqual(order(), [hurried]);
  assert.equal((await read(put)).status, "pending");
  await post(`/v1/notifications/${put}/cancel`);
});

test("what was put aside by somebody who had not heard of the resume comes back all the same", async () => {
  await pauseMail();
  const [late = ""] = await send("email", 1);
  await allAside(1);
  // As if it had been written just after everything was brought back.
  await service.db.query("delete from carillon.pauses");
  await sent([late]);
});

test("bad names, ends and reasons are told; doing it twice is doing it once", async () => {
  for (const [path, body, status] of [
    ["/v1/channels/pigeon/pause", { reason: "r" }, 404],
    ["/v1/providers/nobody/pause", { reason: "r" }, 404],
    ["/v1/tenants/nobody/pause", { reason: "r" }, 404],
    ["/v1/providers/nobody/resume", undefined, 404],
    ["/v1/channels/email/pause", {}, 422],
    ["/v1/channels/email/pause", { reason: " " }, 422],
    ["/v1/channels/email/pause", { reason: "r", until: "tomorrow" }, 422],
    ["/v1/channels/email/pause", { reason: "r", until: "2020-01-01T00:00:00Z" }, 422],
    ["/v1/channels/email/pause", { reason: "r", forever: true }, 422],
    ["/v1/channels/email/resume", undefined, 204],
  ] as const) {
    assert.equal((await post(path, body)).status, status, `${path} ${JSON.stringify(body)}`);
  }
  const first = await pause("channels/email", { until: "2099-01-01T00:00:00.000Z" });
  const again = await pause("channels/email", { reason: "another" });
  assert.deepEqual([again.reason, again.until, again.pausedAt], ["another", undefined, first.pausedAt]);
  assert.equal((await service.ask("GET", "/v1/pauses")).body.data.length, 1);
});

test("what is paused shows in the queue, with the providers, in health and in the metrics", async () => {
  await pause("channels/email");
  await pause("providers/mail", { until: "2099-01-01T00:00:00.000Z" });
  const { paused } = await queue();
  assert.deepEqual(
    paused.map(({ kind, name, pausedBy }: { kind: string; name: string; pausedBy: string }) => [kind, name, pausedBy]),
    [
      ["channel", "email", "environment"],
      ["provider", "mail", "environment"],
    ],
  );
  const { body } = await service.ask("GET", "/v1/providers");
  const pauses = Object.fromEntries(
    body.data.map(({ name, paused }: { name: string; paused?: object }) => [name, paused]),
  );
  assert.equal(pauses.mail.until, "2099-01-01T00:00:00.000Z");
  assert.equal(pauses.other, undefined);
  await until(async () => {
    const { body: figures } = await service.ask("GET", "/metrics");
    const found =
      /^carillon_paused\{kind="channel"\} 1$/m.test(figures) && /^carillon_paused\{kind="provider"\} 1$/m.test(figures);
    return found ? true : undefined;
  });
  const health = await service.ask("GET", "/health");
  const { detail } = health.body.checks.find(({ name }: { name: string }) => name === "workers");
  assert.deepEqual(
    [health.status, health.body.status, detail],
    [200, "healthy", "1 alive; paused: 1 channel, 1 provider"],
  );
  const { body: explained } = await post("/v1/explain", { channel: "email", content, recipient });
  assert.deepEqual([explained.status, explained.outcome.kind], ["queued", "released"]);
});

test("a tenant may pause itself and its own account, and nothing that is anybody else's", async () => {
  const victim = await service.makeKey({ tenant: "victim", scopes: ["admin"] });
  const sender = await service.makeKey({ tenant: "stranger", scopes: ["send", "read"] });
  const reason = { reason: "malice" };
  for (const path of ["channels/email", "providers/mail", "tenants/victim", "tenants/default", "tenants/nobody"]) {
    assert.equal((await post(`/v1/${path}/pause`, reason, strangersKey)).status, 403, path);
    assert.equal((await post(`/v1/${path}/resume`, undefined, strangersKey)).status, 403, path);
  }
  assert.equal((await post("/v1/tenants/stranger/pause", reason, sender)).status, 403);

  const own = await service.ask("PUT", "/v1/providers/mail", { type: "webhook" }, { key: strangersKey });
  assert.equal(own.status, 204, JSON.stringify(own.body));
  assert.equal((await post("/v1/providers/mail/pause", reason, strangersKey)).status, 200);
  assert.equal((await post("/v1/tenants/stranger/pause", reason, strangersKey)).status, 200);
  const seen = async (key: string) =>
    (await service.ask("GET", "/v1/pauses", undefined, { key })).body.data.map(
      ({ kind, name, tenant }: { kind: string; name: string; tenant?: string }) => [kind, name, tenant],
    );
  const account = ["provider", "mail", "stranger"];
  assert.deepEqual(await seen(strangersKey), [account, ["tenant", "stranger", undefined]]);
  assert.deepEqual(await seen(service.key), [account, ["tenant", "stranger", undefined]]);
  assert.deepEqual(await seen(victim), []);

  const others = await send("email", 3, {}, victim);
  await sent(others);
  assert.equal((await post("/v1/tenants/stranger/resume", undefined, strangersKey)).status, 204);
  // With the account goes its pause.
  assert.equal((await service.ask("DELETE", "/v1/providers/mail", undefined, { key: strangersKey })).status, 204);
  assert.deepEqual(await seen(service.key), []);
});

test("what the operator has paused, the tenant's own administrator neither resumes nor gives another end", async () => {
  await pause("tenants/stranger", { reason: "abuse" });
  const soon = { reason: "mine", until: new Date(Date.now() + 60_000).toISOString() };
  assert.equal((await post("/v1/tenants/stranger/resume", undefined, strangersKey)).status, 403);
  assert.equal((await post("/v1/tenants/stranger/pause", soon, strangersKey)).status, 403);
  const { body } = await service.ask("GET", "/v1/pauses", undefined, { key: strangersKey });
  assert.deepEqual(
    body.data.map(({ reason, until }: { reason: string; until?: string }) => [reason, until]),
    [["abuse", undefined]],
  );
  assert.equal((await post("/v1/tenants/stranger/resume")).status, 204);

  // What it has paused itself is its own, and the operator's too.
  assert.equal((await post("/v1/tenants/stranger/pause", soon, strangersKey)).status, 200);
  assert.equal((await post("/v1/tenants/stranger/resume", undefined, strangersKey)).status, 204);
  assert.equal((await post("/v1/tenants/stranger/pause", soon, strangersKey)).status, 200);
  await pause("tenants/stranger", { reason: "abuse" });
  assert.equal((await post("/v1/tenants/stranger/resume", undefined, strangersKey)).status, 403);
  assert.equal((await post("/v1/tenants/stranger/resume")).status, 204);
});

test("a provider that was paused and is no longer configured is resumed all the same, and what waited for it goes another way", async () => {
  await pauseMail();
  const ids = await send("email", 3);
  await allAside(3);
  await worker.stop();
  const { mail: _, ...left } = providers;
  const without = { providers: left, routes: { ...routes, email: "other" } };
  worker = await startWorker(without);
  const changed = await startService({ ...shared, ...without, roles: ["api"], databaseUrl: service.databaseUrl });
  try {
    assert.equal((await changed.ask("POST", "/v1/providers/mail/resume")).status, 204);
    await sent(ids);
    assert.ok(sends.every(({ provider, attempt }) => provider === "other" && attempt === 1));
    assert.equal((await changed.ask("POST", "/v1/providers/mail/resume")).status, 404);
  } finally {
    await changed.stop();
    await worker.stop();
    worker = await startWorker();
  }
});
