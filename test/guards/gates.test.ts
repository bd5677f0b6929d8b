// The guard of a worker: what it asks of the limits, what it does with their answers, and what it costs where there are none.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import { DEFAULT_BREAKER } from "#guards/breaker.ts";
import { createGates, type GatesOptions, type GuardFact } from "#guards/gates.ts";
import type { Demand, Taken } from "#guards/limit/limit.ts";
import { type Limits, NO_LIMITS } from "#guards/limit/limited.ts";
import { carry } from "#steps/walk/carry.ts";
import { pushAll } from "#steps/walk/push.ts";
import { originOf } from "#wire/public-only.ts";
import { worldWith } from "../support/walk.ts";

const message: Message = {
  notificationId: "n",
  tenant: 3,
  attempt: 1,
  request: { channel: "email", recipient: { email: "Ada@Example.com" }, content: { subject: "s", textBody: "t" } },
};
const lease = { handle: 1, meanBytes: 0, endsAt: 100_000, claimedAtMs: 50_000, claimedAt: 1_000, answeredAt: 1_000 };
const place = { seq: 1, rank: 2, lease, expiresAtMs: undefined };
const options = { idempotencyKey: "n", timeoutMs: 100, signal: new AbortController().signal };
const provider = (name: string, send: () => Reply | Promise<Reply> = () => ({ kind: "accepted" })): Provider => ({
  name,
  channels: ["email"],
  capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
  send,
});

function setUp(limits: Limits, answers: (Taken | Error)[] = [], more: Partial<GatesOptions> = {}) {
  const clock = { now: 1_000 };
  const asked: Demand[][] = [];
  const delays: [string, number][] = [];
  const slept: number[] = [];
  const facts: GuardFact[] = [];
  const gates = createGates({
    accountOf: ({ name }) => name,
    limits,
    limit: {
      take: async (asks) => {
        asked.push([...asks]);
        const answer = answers.shift() ?? { isGranted: true, afterMs: 0, isFull: true };
        if (answer instanceof Error) throw answer;
        return answer;
      },
      delay: async (key, ms) => void delays.push([key, ms]),
    },
    leaseMarginMs: 100,
    monotonic: () => clock.now,
    random: () => 0,
    sleep: async (ms) => {
      slept.push(ms);
      clock.now += ms;
    },
    tell: (fact) => facts.push(fact),
    breaker: { ...DEFAULT_BREAKER, failuresInRow: 2 },
    ...more,
  });
  return { gates, clock, asked, delays, slept, facts };
}
const limited = (name: string, rates: Limits["tenant"]): Limits => ({
  ...NO_LIMITS,
  providers: { [name]: { account: rates } },
});

test("without limits and with a closed breaker a send ends in the same turn", () => {
  const { gates, asked } = setUp(NO_LIMITS);
  const carried = carry(message, [provider("a")], options, gates, place);
  assert.ok(!(carried instanceof Promise));
  assert.equal(carried.outcome.kind, "accepted");
  assert.equal(asked.length, 0);
});

test("every limit that a send is under is asked for at once, and addresses are not shown", async () => {
  const second = [{ per: "second", most: 5 }] as const;
  const { gates, asked } = setUp({
    providers: { a: { account: second, recipient: second } },
    tenant: second,
    recipient: second,
  });
  await gates.admit(provider("a"), message, place);
  const other = { ...message, request: { ...message.request, recipient: { email: "ada@example.com" } } };
  await gates.admit(provider("a"), other, place);
  const keys = asked.map((asks) => asks.map(({ key }) => key));
  assert.equal(keys[0]?.length, 4);
  assert.deepEqual([keys[0]?.[0], keys[0]?.[3]], ["account:a", "tenant:3"]);
  assert.deepEqual(keys[0], keys[1], "the same recipient however it is written");
  assert.doesNotMatch(JSON.stringify(keys), /ada/i);
});

test("a refusal postpones without asking anybody else; a short wait is slept", async () => {
  const { gates, slept, facts } = setUp(limited("a", [{ per: "second", most: 1 }]), [
    { isGranted: false, waitMs: 5_000, key: "account:a" },
    { isGranted: true, afterMs: 120, isFull: false },
  ]);
  let others = 0;
  const second = provider("b", () => {
    others++;
    return { kind: "accepted" };
  });
  const { outcome } = await carry(message, [provider("a"), second], options, gates, place);
  // It comes back a little early, to be there when its slot is.
  assert.deepEqual(outcome, { kind: "postponed", waitMs: 4_850, reason: "the limit of a" });
  assert.equal(others, 0);
  assert.equal((await carry(message, [provider("a"), second], options, gates, place)).outcome.kind, "accepted");
  assert.deepEqual(slept, [121]);
  assert.deepEqual(
    facts.map(({ kind }) => kind),
    ["limited", "limited"],
  );
});

test("whoever waited for its limits too long for its lease, or past its expiry, does not begin", async () => {
  const ahead: Taken = { isGranted: true, afterMs: 150, isFull: false };
  const { gates } = setUp(limited("a", [{ per: "second", most: 1 }]), [ahead, ahead, ahead]);
  const a = provider("a", assert.fail);
  const short = { ...place, lease: { ...lease, endsAt: 1_240 } };
  const { outcome } = await carry(message, [a], options, gates, short);
  assert.deepEqual(outcome, { kind: "released" });
  assert.equal((await carry(message, [a], options, gates, { ...place, expiresAtMs: 50_200 })).outcome.kind, "expired");
  assert.equal((await carry(message, [provider("a")], options, gates, place)).outcome.kind, "accepted");
});

test("a breaker that opened while somebody waited for its limits holds it back", async () => {
  const { gates, clock } = setUp(limited("a", [{ per: "second", most: 1 }]));
  const a = provider("a", () => ({ kind: "unavailable", reason: "503" }));
  const begun = gates.admit(a, message, place);
  gates.adopt({ account: "a", state: "open", openMs: 2_000, openings: 1, pausedMs: 0 });
  const found = await begun;
  assert.ok(
    typeof found !== "number" && found.kind === "postponed" && found.isPassedOver && found.waitMs === 2_000,
    `${clock.now}`,
  );
});

test("when the engine is away nobody sends", async () => {
  const { gates } = setUp(limited("a", [{ per: "second", most: 1 }]), [new Error("away")]);
  const { outcome } = await carry(message, [provider("a", assert.fail)], options, gates, place);
  assert.equal(outcome.kind, "postponed");
});

test("high rates are asked for in blocks: many who come together cost few asks", async () => {
  const { gates, asked, clock } = setUp(limited("a", [{ per: "second", most: 1_000 }]));
  const a = provider("a");
  const many = (n: number) => Promise.all(Array.from({ length: n }, () => carry(message, [a], options, gates, place)));
  await many(19);
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.[0]?.n, 19);
  await many(1);
  assert.equal(asked.length, 2, "the block is used up");
  clock.now += 60;
  await many(1);
  assert.equal(asked.length, 3, "what was taken long ago is given up");
});

test("an open breaker passes over to the next provider, and where there is none it postpones", async () => {
  const { gates, clock, facts } = setUp(NO_LIMITS);
  let calls = 0;
  let isUp = false;
  const a = provider("a", () => {
    calls++;
    return isUp ? { kind: "accepted" } : { kind: "unavailable", reason: "503" };
  });
  for (let n = 0; n < 4; n++) {
    const { outcome, provider: by } = await carry(message, [a, provider("b")], options, gates, place);
    assert.deepEqual([outcome.kind, by?.name], ["accepted", "b"]);
  }
  assert.equal(calls, 2);
  const { outcome, passedOver } = await carry(message, [a], options, gates, place);
  assert.deepEqual(outcome, { kind: "postponed", waitMs: 1_000, reason: "a does not answer", silentMs: 0 });
  assert.deepEqual(passedOver, []);
  const [opened] = facts;
  assert.ok(opened?.kind === "breaker" && opened.view.state === "open" && opened.reason === "503");
  isUp = true;
  clock.now += 1_000;
  for (let n = 0; n < 5; n++) await carry(message, [a], options, gates, place);
  assert.deepEqual(
    gates.states().find(({ account }) => account === "a"),
    { account: "a", state: "closed" },
  );
});

test("what speaks only against the recipient or the content, or of too much, leaves the breaker closed", async () => {
  const { gates } = setUp(NO_LIMITS);
  for (const kind of ["rejected", "dead-recipient", "limited"] as const) {
    const a = provider("a", () => ({ kind, reason: "no" }));
    for (let n = 0; n < 50; n++) await carry(message, [a], options, gates, place);
  }
  assert.ok(gates.states().every(({ state }) => state === "closed"));
});

test("Retry-After holds for the account's limit, else for the recipient's, else as a pause", async () => {
  const busy = (name: string) => provider(name, () => ({ kind: "limited", reason: "429", retryAfterMs: 700 }));
  const rates = [{ per: "second", most: 5 }] as const;
  const { gates, delays, facts, clock } = setUp({
    ...NO_LIMITS,
    providers: { a: { account: rates, recipient: rates }, b: { recipient: rates } },
  });
  await carry(message, [busy("a")], options, gates, place);
  await carry(message, [busy("b")], options, gates, place);
  assert.deepEqual(delays[0], ["account:a", 700]);
  assert.match(delays[1]?.[0] ?? "", /^recipient:b:/);
  const c = busy("c");
  await carry(message, [c], options, gates, place);
  assert.deepEqual(facts.at(-1), { kind: "pause", account: "c", ms: 700 });
  const held = await carry(message, [c], options, gates, place);
  assert.ok(held.outcome.kind === "postponed" && held.outcome.waitMs === 700);
  clock.now += 701;
  assert.equal((await carry(message, [c], options, gates, place)).outcome.kind, "limited");
});

test("push: nothing sent gives the attempt back, and what was sent before a limit is kept in the record", async () => {
  const devices = ["x", "y"].map((token) => ({ token, platform: "ios" as const }));
  const world = worldWith([], {});
  const no: Taken = { isGranted: false, waitMs: 5_000, key: "account:a" };
  const rates = limited("a", [{ per: "second", most: 1 }]);
  const none = await pushAll(message, devices, [provider("a")], options, world, setUp(rates, [no, no]).gates, place);
  assert.deepEqual([none.outcome.kind, none.devices], ["postponed", []]);
  const granted: Taken = { isGranted: true, afterMs: 0, isFull: false };
  const partly = await pushAll(
    message,
    devices,
    [provider("a")],
    options,
    world,
    setUp(rates, [granted, no]).gates,
    place,
  );
  assert.ok(partly.outcome.kind === "limited" && partly.outcome.isPartly && partly.outcome.retryAfterMs === 4_850);
  assert.deepEqual(
    partly.devices.map(({ token, outcome }) => [token, outcome]),
    [["x", "accepted"]],
  );
});

const toUrl = (tenant: number, webhookUrl: string): Message => ({
  ...message,
  tenant,
  request: { channel: "webhook", recipient: { webhookUrl }, content: { body: "b" } },
});
const hooks = (send: () => Reply): Provider => ({
  ...provider("hooks", send),
  receiver: ({ request }) => originOf(request.recipient?.webhookUrl),
});

test("a receiver's Retry-After is a pause of that receiver alone, whatever limits there are", async () => {
  const rates = [{ per: "second", most: 5 }] as const;
  const { gates, delays, facts } = setUp({
    providers: { hooks: { account: rates, recipient: rates } },
    tenant: rates,
    recipient: rates,
  });
  const busy = hooks(() => ({ kind: "limited", reason: "429", retryAfterMs: 3_600_000 }));
  await carry(toUrl(3, "https://a.example/x"), [busy], options, gates, place);
  assert.deepEqual(delays, []);
  const account = "hooks@3 https://a.example";
  assert.deepEqual(facts.at(-1), { kind: "pause", account, tenant: 3, ms: 3_600_000 });
  const outcomes = [];
  for (const [tenant, url] of [
    [3, "https://a.example/y"],
    [3, "https://a.example:444/x"],
    [3, "https://b.example/x"],
    [4, "https://a.example/x"],
  ] as const)
    outcomes.push((await carry(toUrl(tenant, url), [busy], options, gates, place)).outcome.kind);
  assert.deepEqual(outcomes, ["postponed", "limited", "limited", "limited"]);
});

test("a tenant that names receivers without end loses what is known of its own, not of others'", async () => {
  const { gates } = setUp(NO_LIMITS, [], { mostReceivers: 10 });
  const away = hooks(() => ({ kind: "unavailable", reason: "refused" }));
  const isHeld = async (tenant: number, url: string) =>
    (await carry(toUrl(tenant, url), [away], options, gates, place)).outcome.kind === "postponed";
  for (let n = 0; n < 2; n++) await isHeld(4, "https://down.example/");
  assert.ok(await isHeld(4, "https://down.example/"));
  for (let n = 0; n < 200; n++) for (let twice = 0; twice < 2; twice++) await isHeld(3, `https://${n}.example/`);
  const { open } = gates.receivers();
  assert.equal(open, 10, "no more than that are kept");
  assert.ok(await isHeld(4, "https://down.example/"));
  assert.ok(await isHeld(3, "https://199.example/"));
  assert.ok(!(await isHeld(3, "https://0.example/")));
  assert.ok(gates.states().length <= 1, "receivers are not named");
});

test("a device whose push service asked for a pause does not keep the others of its user waiting", async () => {
  const { gates } = setUp(NO_LIMITS);
  const world = worldWith([], {});
  const device = (token: string, origin: string) => ({
    token,
    platform: "web" as const,
    subscription: { endpoint: `https://${origin}/${token}`, keys: { p256dh: "", auth: "" } },
  });
  const push: Provider = {
    ...provider("push"),
    receiver: (one) => originOf(one.device?.subscription?.endpoint),
    send: ({ device: one }) =>
      one?.token.startsWith("busy") ? { kind: "limited", reason: "429", retryAfterMs: 60_000 } : { kind: "accepted" },
  };
  await carry({ ...message, device: device("busy", "busy.example") }, [push], options, gates, place);
  const devices = [
    ...Array.from({ length: 30 }, (_, n) => device(`busy${n}`, "busy.example")),
    ...Array.from({ length: 30 }, (_, n) => device(`good${n}`, "good.example")),
  ];
  const { devices: results, outcome } = await pushAll(message, devices, [push], options, world, gates, place);
  assert.equal(results.filter((one) => one.outcome === "accepted").length, 30);
  assert.ok(outcome.kind === "limited" && outcome.isPartly);
});
