// One attempt that is made to wait on its way: whether it is still sent is decided right before it would be.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Provider } from "#channels/channel.ts";
import type { Ended, Reply } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { createGates } from "#guards/gates.ts";
import { NO_LIMITS } from "#guards/limit/limited.ts";
import type { Locked } from "#guards/lock/locked.ts";
import { deliver } from "#steps/walk/deliver.ts";
import { prepare } from "#steps/walk/prepare.ts";
import { answering, claimedWith, worldWith } from "../support/walk.ts";

const LEASE_MS = 10_000;
const MARGIN_MS = 1_000;
const CLAIMED_AT_MS = 1_700_000_000_000;

type Way = {
  request: NotificationRequest;
  number?: number;
  expiresAtMs?: number;
  devices?: string[];
  /** What takes long, and how long. */
  slow: { [part in "render" | "lock" | "settledDevices" | "first"]?: number };
  /** What earlier attempts came to cannot be read. */
  isForgetful?: boolean;
  send?: (message: Message) => Reply;
};

/** Delivers on a clock that only the parts move; answers with whom it reached and what was settled. */
async function delivered({ request, number = 1, expiresAtMs, devices = [], slow, isForgetful, send }: Way) {
  let now = 0;
  const pass = async (part: keyof typeof slow) => {
    now += slow[part] ?? 0;
  };
  const reached: string[] = [];
  const settled: Ended[] = [];
  const provider = (name: string, part?: "first"): Provider => ({
    name,
    channels: [request.channel],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
    async send(message) {
      reached.push(message.device?.token ?? name);
      if (part) await pass(part);
      return send?.(message) ?? (part ? { kind: "unavailable", reason: "away" } : { kind: "accepted" });
    },
  });
  const isPush = request.channel === "push";
  const db = answering(async (text) => {
    if (text.includes("update carillon.devices")) now += 20_000;
    if (!text.includes("from carillon.events")) return [];
    await pass("settledDevices");
    return isForgetful ? Promise.reject(new Error("the database is away")) : [];
  });
  const world = worldWith(settled, {
    db,
    providers: {
      route: () =>
        isPush || slow.first === undefined ? [provider("only")] : [provider("one", "first"), provider("two")],
    },
    templates: {
      render: async (_tenant, filled) => {
        await pass("render");
        return { request: filled };
      },
    },
    guard: createGates({
      accountOf: ({ name }) => name,
      limits: NO_LIMITS,
      limit: { take: () => assert.fail("nothing is limited"), delay: async () => undefined },
      leaseMarginMs: MARGIN_MS,
      monotonic: () => now,
      random: () => 0,
      sleep: () => assert.fail("nobody sleeps"),
      tell: () => undefined,
    }),
    monotonic: () => now,
    leaseMarginMs: MARGIN_MS,
  });
  if (slow.lock !== undefined) {
    const door: Locked["door"] = () => ({
      enter: async () => {
        await pass("lock");
        return undefined;
      },
      leave: () => undefined,
    });
    world.locked = { covers: () => true, door, close: async () => undefined };
  }
  const lease = {
    handle: 1,
    meanBytes: 100,
    endsAt: LEASE_MS,
    claimedAtMs: CLAIMED_AT_MS,
    claimedAt: 0,
    answeredAt: 0,
  };
  const to = isPush ? { ...request, recipient: { deviceTokens: devices } } : request;
  const claimed = claimedWith({ lease, number, request: to, expiresAtMs });
  const [prepared = assert.fail("nothing was prepared")] = await prepare([claimed], world);
  const slot = { idempotencyKey: "n", timeoutMs: 100, signal: new AbortController().signal, startedAt: 0 };
  await deliver(prepared, { ...slot, free: () => undefined }, world);
  const [{ settlement, line } = assert.fail("nothing was settled")] = settled;
  const recorded = line?.detail?.devices;
  const count = Array.isArray(recorded) ? recorded.length : undefined;
  return { reached, to: settlement.to, outcome: line?.outcome, devices: count };
}

const plain: NotificationRequest = { channel: "console", content: { body: "b" } };
const templated: NotificationRequest = { channel: "console", content: { templateId: "t" } };
const push: NotificationRequest = { channel: "push", content: { body: "b" } };
const soon = { expiresAtMs: CLAIMED_AT_MS + 500 };

const WAITS: { what: string; way: Omit<Way, "slow">; part: keyof Way["slow"] }[] = [
  { what: "its template", way: { request: templated }, part: "render" },
  { what: "its lock", way: { request: plain }, part: "lock" },
  { what: "what earlier attempts came to", way: { request: push, number: 2, devices: ["d"] }, part: "settledDevices" },
];

for (const { what, way, part } of WAITS) {
  test(`what waited for ${what} past its expiry is not sent, and has expired`, async () => {
    assert.deepEqual((await delivered({ ...way, slow: { [part]: 499 }, ...soon })).to, "sent");
    const { reached, to, outcome } = await delivered({ ...way, slow: { [part]: 500 }, ...soon });
    assert.deepEqual([reached, to, outcome], [[], "expired", "expired"]);
  });

  test(`what waited for ${what} until its lease is about to end is not sent, and goes back unspent`, async () => {
    assert.deepEqual((await delivered({ ...way, slow: { [part]: 8_999 } })).to, "sent");
    const { reached, to, outcome } = await delivered({ ...way, slow: { [part]: 9_000 } });
    assert.deepEqual([reached, to, outcome], [[], "queued", undefined]);
  });
}

test("while the first provider of a route took its time, the expiry or the lease has passed: the next is not asked", async () => {
  const inTime = await delivered({ request: plain, slow: { first: 100 }, ...soon });
  assert.deepEqual([inTime.reached, inTime.to], [["one", "two"], "sent"]);
  for (const late of [{ slow: { first: 600 }, ...soon }, { slow: { first: 9_500 } }]) {
    const { reached, to, outcome } = await delivered({ request: plain, ...late });
    // It was an attempt, and the record says of what kind.
    assert.deepEqual([reached, to, outcome], [["one"], "pending", "unavailable"]);
  }
});

test("each device of a push is looked at anew: after the expiry, or with its lease about to end, no further one is sent to", async () => {
  // More than go abreast. The first is dead, and marking it so takes long.
  const devices = Array.from({ length: 22 }, (_, n) => `d${n}`);
  const dead: Reply = { kind: "dead-recipient", reason: "gone" };
  const send = ({ device }: Message): Reply => (device?.token === "d0" ? dead : { kind: "accepted" });
  const first = devices.slice(0, 20);
  const way = { request: push, devices, slow: {}, send };

  const expired = await delivered({ ...way, ...soon });
  assert.deepEqual([expired.reached, expired.to], [first, "sent"]);
  const released = await delivered(way);
  // The others get it in the next attempt; the record tells who has it already.
  assert.deepEqual([released.reached, released.to, released.outcome], [first, "pending", "limited"]);
  assert.equal(released.devices, 20);
});

test("where nobody can tell which devices were reached before, none is sent to, and the push is tried again", async () => {
  const way = { request: push, devices: ["d"], slow: {}, isForgetful: true };
  const { reached, to, outcome } = await delivered({ ...way, number: 2 });
  assert.deepEqual([reached, to, outcome], [[], "pending", "unavailable"]);
  assert.deepEqual((await delivered(way)).reached, ["d"], "a first attempt needs not know");
});

test("where nobody can tell how often it may have been sent already, a lost answer is held and not sent again", async () => {
  const lost = { request: plain, slow: {}, send: (): Reply => ({ kind: "ambiguous", reason: "no answer" }) };
  assert.equal((await delivered({ ...lost, number: 2 })).to, "pending");
  assert.equal((await delivered({ ...lost, number: 2, isForgetful: true })).to, "ambiguous");
  assert.equal((await delivered({ ...lost, isForgetful: true })).to, "pending", "a first attempt needs not know");
});
