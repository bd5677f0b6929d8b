// What a worker makes of pauses: what it stops, whom it asks, and whose word is newer.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Provider } from "#channels/channel.ts";
import type { Ended } from "#domain/attempt.ts";
import { type Guard, NO_GUARD } from "#guards/guard.ts";
import { createPauses, type Paused, pausedGuard } from "#guards/pauses.ts";
import { carry } from "#steps/walk/carry.ts";
import { deliver } from "#steps/walk/deliver.ts";
import { type Prepared, prepare } from "#steps/walk/prepare.ts";
import { pushAll } from "#steps/walk/push.ts";
import { claimedWith, worldWith } from "../support/walk.ts";

const request: Message["request"] = { channel: "email", content: { subject: "s", textBody: "t" } };
const message: Message = { notificationId: "n", tenant: 3, attempt: 1, request };
const options = { idempotencyKey: "n", timeoutMs: 100, signal: new AbortController().signal };
const leaseFrom = (claimedAt: number, answeredAt = claimedAt) => ({
  handle: 1,
  meanBytes: 0,
  endsAt: Number.POSITIVE_INFINITY,
  claimedAtMs: 0,
  claimedAt,
  answeredAt,
});
const turnFrom = (claimedAt: number) => ({ seq: 1, rank: 2, expiresAtMs: undefined, lease: leaseFrom(claimedAt) });

function setUp(...stored: Paused[]) {
  const clock = { now: 1_000 };
  const asked: string[] = [];
  let looks = 0;
  const failures: unknown[] = [];
  const world = { stored: stored as readonly Paused[] | Error };
  const pauses = createPauses({
    read: async () => {
      looks++;
      if (world.stored instanceof Error) throw world.stored;
      return world.stored;
    },
    monotonic: () => clock.now,
    onFailure: (error) => failures.push(error),
  });
  const provider = (name: string, platform?: "ios" | "android"): Provider => ({
    name,
    channels: ["email"],
    capabilities: {
      batch: 1,
      attachments: false,
      tracking: false,
      reconciles: false,
      ...(platform && { platforms: [platform] }),
    },
    send() {
      asked.push(name);
      return { kind: "accepted" };
    },
  });
  const guard = pausedGuard(NO_GUARD, pauses, ({ name }) => name);
  return { clock, asked, world, pauses, guard, provider, failures, looks: () => looks };
}
const endless = (kind: Paused["kind"], name: string): Paused => ({ kind, name, leftMs: null });
const YEAR_MS = 365 * 86_400_000;

test("where nothing is paused a send ends in the same turn, and nothing is looked up for it", () => {
  const { guard, provider, looks } = setUp();
  assert.ok(!(carry(message, [provider("a")], options, guard, turnFrom(0)) instanceof Promise));
  assert.equal(looks(), 0);
});

test("a paused account is passed over; where all are, the message waits for whichever is back first", async () => {
  const { guard, pauses, provider, asked, clock } = setUp(endless("provider", "a"), {
    kind: "provider",
    name: "b",
    leftMs: 5_000,
  });
  await pauses.look();
  await carry(message, [provider("a"), provider("c")], options, guard, turnFrom(0));
  assert.deepEqual(asked, ["c"]);
  const { outcome } = await carry(message, [provider("a"), provider("b")], options, guard, turnFrom(0));
  assert.ok(outcome.kind === "postponed");
  assert.deepEqual([outcome.waitsFor, outcome.reason], [["a", "b"], "b is paused"]);
  assert.ok(outcome.waitMs >= 5_000 && outcome.waitMs < 60_000, `${outcome.waitMs}`);
  const alone = await carry(message, [provider("a")], options, guard, turnFrom(0));
  assert.ok(alone.outcome.kind === "postponed" && alone.outcome.waitMs > YEAR_MS);
  clock.now += 5_000;
  await carry(message, [provider("b")], options, guard, turnFrom(0));
  assert.deepEqual(asked, ["c", "b"], "its end has come");
});

test("what was claimed after the last look is not put aside before another: it may have been brought back by a resume", async () => {
  const { guard, pauses, provider, asked, world, clock, looks } = setUp(endless("provider", "a"));
  await pauses.look();
  world.stored = [];
  clock.now += 10;
  await Promise.all([1, 2, 3].map(() => carry(message, [provider("a")], options, guard, turnFrom(clock.now))));
  assert.deepEqual([asked.length, looks()], [3, 2], "one look for all of them");
});

test("a channel or tenant that was paused since the claim stops what has not begun; an older look says nothing", async () => {
  const { pauses, clock } = setUp(endless("channel", "email"), endless("tenant", "7"));
  await pauses.look();
  const attempt = (claimedAt: number, more: object = {}) => ({
    tenant: 3,
    request,
    lease: leaseFrom(claimedAt),
    ...more,
  });
  const sms = { request: { channel: "sms" as const, content: {} } };
  assert.equal(pauses.isPaused(attempt(clock.now - 1)), true);
  assert.equal(pauses.isPaused(attempt(clock.now - 1, sms)), false);
  assert.equal(pauses.isPaused(attempt(clock.now - 1, { ...sms, tenant: 7 })), true);
  assert.equal(pauses.isPaused(attempt(clock.now + 1)), false, "the claim knew better");
});

test("a look that began before the claim was answered may be older than it: what a resume let go is sent, not handed back", async () => {
  const { pauses, guard, provider, asked, world, clock, looks } = setUp(
    endless("channel", "email"),
    endless("provider", "a"),
  );
  // The claim is under way while this look reads what is resumed before the claim does.
  const claimedAt = clock.now - 5;
  await pauses.look();
  world.stored = [];
  clock.now += 5;
  const lease = leaseFrom(claimedAt, clock.now);
  assert.equal(pauses.isPaused({ tenant: 3, request, lease }), false);
  await carry(message, [provider("a")], options, guard, { ...turnFrom(0), lease });
  assert.deepEqual([asked, looks()], [["a"], 2], "one look more, at once");
});

test("what is paused since it was claimed goes back to its lane, unsent and unspent", async () => {
  const { pauses, provider, asked } = setUp(endless("channel", "email"));
  await pauses.look();
  const settled: Ended[] = [];
  const world = worldWith(settled, { pauses, providers: { route: () => [provider("a")] } });
  const [prepared] = await prepare([claimedWith({ request, lease: leaseFrom(0) })], world);
  const slot = { ...options, startedAt: 0, free: () => undefined };
  await deliver(prepared as Prepared, slot, world);
  assert.deepEqual(
    [asked, settled.map(({ settlement, line }) => [settlement, line])],
    [[], [[{ to: "queued" }, undefined]]],
  );
});

test("while the database does not answer, what was read last stands", async () => {
  const { pauses, world, failures, guard, provider, asked } = setUp(endless("provider", "a"));
  await pauses.look();
  world.stored = new Error("away");
  const { outcome } = await carry(message, [provider("a")], options, guard, turnFrom(2_000));
  assert.deepEqual([outcome.kind, asked, failures.length], ["postponed", [], 1]);
});

test("a push that reached some devices comes back soon for those behind a paused provider, and then waits without spending", async () => {
  const { guard, pauses, provider } = setUp(endless("provider", "apns"));
  await pauses.look();
  const providers = [provider("fcm", "android"), provider("apns", "ios")];
  const devices = [
    { token: "1", platform: "android" as const },
    { token: "2", platform: "ios" as const },
  ];
  const world = worldWith([], {});
  const first = await pushAll(message, devices, providers, options, world, guard, turnFrom(0));
  assert.ok(first.outcome.kind === "limited" && (first.outcome.retryAfterMs ?? 0) <= 60_000);
  const rest = await pushAll(message, devices.slice(1), providers, options, world, guard, turnFrom(0));
  assert.ok(rest.outcome.kind === "postponed");
  assert.deepEqual(rest.outcome.waitsFor, ["apns"]);
});

test("a push whose devices are all behind paused providers waits for whichever is back first", async () => {
  const { guard, pauses, provider } = setUp(endless("provider", "apns"), endless("provider", "fcm"));
  await pauses.look();
  const providers = [provider("fcm", "android"), provider("apns", "ios")];
  const devices = [
    { token: "1", platform: "android" as const },
    { token: "2", platform: "ios" as const },
    { token: "3", platform: "ios" as const },
  ];
  const { outcome } = await pushAll(message, devices, providers, options, worldWith([], {}), guard, turnFrom(0));
  assert.ok(outcome.kind === "postponed");
  assert.deepEqual(outcome.waitsFor, ["fcm", "apns"]);
});

test("what waits for a paused account or for another's breaker, whichever is over first, is brought back by a resume too", async () => {
  const { guard, pauses, provider } = setUp(endless("provider", "a"));
  await pauses.look();
  const shut = { kind: "postponed" as const, waitMs: 60_000, reason: "b is down", isPassedOver: true };
  const both = {
    ...guard,
    admit: (...of: Parameters<Guard["admit"]>) => (of[0].name === "b" ? shut : guard.admit(...of)),
  };
  const { outcome } = await carry(message, [provider("a"), provider("b")], options, both, turnFrom(0));
  assert.deepEqual(outcome, { kind: "postponed", waitMs: 60_000, reason: "b is down", waitsFor: ["a"] });
});
