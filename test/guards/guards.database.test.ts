// Limits and breakers in the walk of a whole service.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Message } from "#channels/channel.ts";
import type { Config } from "#config/read.ts";
import { tellBreaker } from "#store/breakers.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const sends: { [provider: string]: { id: string; at: number }[] } = {};
const watched = (name: string) => {
  const list: { id: string; at: number }[] = [];
  sends[name] = list;
  return { onSend: ({ notificationId: id }: Message) => void list.push({ id, at: performance.now() }) };
};
/** Tests make providers ill and well again by changing these. */
const primaryMix = { unavailable: 0 };
const onlyMix = { unavailable: 0 };
const rejectingMix = { rejected: 0.5, deadRecipient: 0.5 };
const busyMix = { limited: 1 };

const providers: Config["providers"] = {
  slow: { type: "test", ...watched("slow") },
  primary: { type: "test", mix: primaryMix, ...watched("primary") },
  second: { type: "test", ...watched("second") },
  only: { type: "test", mix: onlyMix, ...watched("only") },
  rejecting: { type: "test", mix: rejectingMix, ...watched("rejecting") },
  busy: { type: "test", mix: busyMix, retryAfterMs: 1_500, ...watched("busy") },
  quick: { type: "test", ...watched("quick") },
};
const routes: Config["routes"] = {
  email: "slow",
  sms: ["primary", "second"],
  slack: "only",
  webhook: "rejecting",
  inbox: "busy",
  console: "quick",
  push: "quick",
  file: "quick",
};
const limits: Config["limits"] = {
  providers: { slow: { account: [{ per: "second", most: 1 }] }, quick: { account: [{ per: "second", most: 1_000 }] } },
  tenant: [],
  recipient: [],
};

let service: Service;
before(async () => {
  service = await startService({ roles: ["api", "worker", "scheduler", "keeper"], providers, routes, limits });
});
after(() => service.stop());

const content = { subject: "s", textBody: "t", body: "b" };
const recipient = { email: "a@b.co", phone: "+33612345678", slackChannel: "c", webhookUrl: "https://x.y", userId: "u" };
const ENDED = ["sent", "failed", "ambiguous", "expired"];

async function send(channel: string, count = 1): Promise<string[]> {
  const notifications = Array.from({ length: count }, () => ({ channel, content, recipient }));
  const { status, body } = await service.ask("POST", "/v1/notifications/batch", { notifications });
  assert.ok(status < 300, JSON.stringify(body));
  return body.results.map(({ notificationId }: { notificationId: string }) => notificationId);
}
const read = async (id: string) => (await service.ask("GET", `/v1/notifications/${id}`)).body;
const ended = (id: string, mostMs?: number) =>
  until(async () => {
    const record = await read(id);
    return ENDED.includes(record.status) ? record : undefined;
  }, mostMs);
const shown = async (name: string) => {
  const { body } = await service.ask("GET", "/v1/providers");
  return body.data.find((one: { name: string }) => one.name === name);
};

test("five sends under a limit of one a second go out in order, a second apart, with one attempt each", async () => {
  const startedAt = performance.now();
  const ids = await send("email", 5);
  const { limits: before } = await until(async () => {
    const found = await shown("slow");
    return found.limits.account[0].waitMs > 0 ? found : undefined;
  });
  assert.deepEqual([before.account[0].per, before.account[0].most, before.account[0].room], ["second", 1, 0]);
  const records = [];
  for (const id of ids) records.push(await ended(id));
  const sent = sends.slow ?? [];
  assert.deepEqual(
    sent.map(({ id }) => id),
    ids,
  );
  // What the database grants a second apart may reach the provider closer, but not before its turn.
  for (const [n, { at }] of sent.entries()) assert.ok(at - startedAt >= n * 1_000 - 50, `${n}: ${at - startedAt} ms`);
  for (const [n, { status, attempts, events }] of records.entries()) {
    assert.deepEqual([status, attempts.length, attempts[0].number], ["sent", 1, 1]);
    const waits = events.filter(({ type }: { type: string }) => type === "postponed");
    assert.equal(waits.length, n === 0 ? 0 : 1, "the first postponement is in the record, and only that");
    if (n > 0) assert.equal(waits[0].error, "the limit of slow");
  }
});

test("a high limit is taken in blocks, and all is sent", async () => {
  const ids = await send("console", 300);
  for (const id of ids) assert.equal((await ended(id)).attempts.length, 1);
  assert.equal(sends.quick?.length, 300);
});

test("a provider that is down is passed over, then asked no more, and asked again when it is back", async () => {
  primaryMix.unavailable = 1;
  const down = await send("sms", 60);
  for (const id of down) assert.equal((await ended(id)).status, "sent");
  assert.equal(sends.second?.length, 60, "the second provider has sent them all");
  await until(async () => ((await shown("primary")).breaker.state !== "closed" ? true : undefined));
  const asked = sends.primary?.length ?? 0;
  await Promise.all((await send("sms", 10)).map((id) => ended(id)));
  assert.ok((sends.primary?.length ?? 0) <= asked + 5, "some probes at most");

  primaryMix.unavailable = 0;
  await until(async () => {
    await Promise.all((await send("sms", 2)).map((id) => ended(id)));
    return (await shown("primary")).breaker.state === "closed" ? true : undefined;
  });
  const before = sends.second?.length;
  const [id = ""] = await send("sms");
  assert.equal((await ended(id)).attempts[0].provider, "primary");
  assert.equal(sends.second?.length, before);
});

test("where nobody else carries it, it waits without spending attempts, and nothing is dropped", async () => {
  onlyMix.unavailable = 1;
  const first = await send("slack", 25);
  await until(async () => ((await shown("only")).breaker.state !== "closed" ? true : undefined));
  const later = await send("slack", 25);
  await until(async () => ((await read(later[24] ?? "")).status === "pending" ? true : undefined));
  onlyMix.unavailable = 0;
  for (const id of later) {
    const { status, attempts, events } = await ended(id, 40_000);
    assert.equal(status, "sent");
    assert.ok(attempts.length <= 2, `${attempts.length} attempts`);
    assert.ok(events.filter(({ type }: { type: string }) => type === "postponed").length <= 1);
  }
  for (const id of first) assert.equal((await ended(id, 40_000)).status, "sent");
  await until(async () => ((await shown("only")).breaker.state === "closed" ? true : undefined));
});

test("bad recipients and contents never trip the breaker", async () => {
  const ids = await send("webhook", 100);
  for (const id of ids) assert.equal((await ended(id)).status, "failed");
  assert.equal(sends.rejecting?.length, 100);
  assert.equal((await shown("rejecting")).breaker.state, "closed");
});

test("one that says it is too much is left alone by everybody for as long as it asks", async () => {
  const [first = ""] = await send("inbox");
  await until(async () => ((await read(first)).attempts.length === 1 ? true : undefined));
  busyMix.limited = 0;
  const at = sends.busy?.[0]?.at ?? 0;
  const [id = ""] = await send("inbox");
  const { attempts } = await ended(id);
  assert.equal(attempts.length, 1);
  const next = sends.busy?.find((one) => one.id === id)?.at ?? 0;
  assert.ok(next - at >= 1_450, `${next - at} ms`);
  assert.equal((await shown("busy")).breaker.state, "closed");
});

test("what another worker found out about a provider is heeded, until it says otherwise", async () => {
  const told = { account: "quick", openings: 1, reason: "down", worker: 99_999 };
  await tellBreaker(service.db, { ...told, state: "open", openMs: 20_000 });
  await until(async () => {
    const { body } = await service.ask("GET", "/metrics");
    return body.includes('notification_breaker_state{provider="quick"} 2') ? true : undefined;
  });
  const [id = ""] = await send("console");
  const waiting = await until(async () => {
    const record = await read(id);
    return record.status === "pending" ? record : undefined;
  });
  assert.equal(waiting.events.at(-1).error, "quick does not answer");
  const { body } = await service.ask("GET", `/v1/notifications/${id}`);
  assert.equal(body.attempts.length, 0);
  await tellBreaker(service.db, { ...told, state: "closed", openMs: 0 });
  await until(async () => {
    const { body } = await service.ask("GET", "/metrics");
    return body.includes('notification_breaker_state{provider="quick"} 0') ? true : undefined;
  });
  const [next = ""] = await send("console");
  assert.equal((await ended(next)).status, "sent");
});

test("metrics tell the breakers' states and who was limited for how long", async () => {
  const { body } = await service.ask("GET", "/metrics");
  assert.match(body, /notification_breaker_state\{provider="primary"\} 0/);
  assert.match(body, /notification_limited_total\{kind="account"\} [1-9]/);
  assert.match(body, /notification_limit_wait_seconds_count\{kind="account"\} [1-9]/);
});
