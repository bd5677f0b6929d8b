// A delivery under its lock: skipped where another has it, made anyway where nobody can tell.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Registry } from "prom-client";
import type { Provider } from "#channels/channel.ts";
import { type Admitted, type Guard, NO_GUARD } from "#guards/guard.ts";
import { createKubernetesLock } from "#guards/lock/kubernetes.ts";
import type { HeldByOther, Hold, Lock } from "#guards/lock/lock.ts";
import { createLocked, type Locked, type LockedOptions } from "#guards/lock/locked.ts";
import { lockedGuard } from "#guards/lock/locked-guard.ts";
import { createLockMetrics } from "#telemetry/lock-metrics.ts";
import { type KubernetesStandIn, startKubernetesStandIn } from "../../support/kubernetes-stand-in.ts";
import { until } from "../../support/until.ts";

const monotonic = () => performance.now();
let server: KubernetesStandIn;
let failures: string[];
let troubles: object[];
let asked: string[];
let closes: (() => Promise<void>)[];

beforeEach(async () => {
  server = await startKubernetesStandIn();
  [failures, troubles, asked, closes] = [[], [], [], []];
});
afterEach(async () => {
  for (const close of closes) await close();
  await server.close();
});

function openLock(identity: string, timeoutMs = 60_000): Lock {
  const { kubeconfig } = server;
  const clocks = { monotonic, wallClock: Date.now };
  return createKubernetesLock({ kubeconfig, namespace: "carillon", identity, timeoutMs, ...clocks });
}
function open(identity: string, more: Partial<LockedOptions> = {}) {
  const locked = createLocked({
    lock: openLock(identity),
    channels: ["slack", "email"],
    patienceMs: 60_000,
    monotonic,
    onFailure: (channel, reason) => failures.push(`${channel} ${reason}`),
    onAsked: (channel) => asked.push(channel),
    onTrouble: (trouble) => troubles.push(trouble),
    ...more,
  });
  closes.push(locked.close);
  return locked;
}
function promised<Value>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((given) => {
    resolve = given;
  });
  return { promise, resolve };
}
/** As a delivery does: acts unless another holds the lock. */
async function run<Value>(locked: Locked, channel: string, key: string, act: () => Value | Promise<Value>) {
  const door = locked.door(channel, key);
  try {
    const held = await door.enter();
    return held ?? { kind: "done" as const, value: await act() };
  } finally {
    door.leave();
  }
}
const leases = () => server.leases("carillon").length;
const nobodyLeft = () => until(async () => (server.leases("carillon").length === 0 ? true : undefined));

test("a delivery runs under its lock, and frees it", async () => {
  const done = await run(open("pod"), "slack", "n1", () => leases());
  assert.deepEqual(done, { kind: "done", value: 1 });
  assert.deepEqual(asked, ["slack"]);
  await nobodyLeft();
  assert.deepEqual(failures, []);
});

test("while one delivers, the other is told who and does not act; when it is done, the other may", async () => {
  const [one, other] = [open("one"), open("other")];
  const { promise: sent, resolve: send } = promised<string>();
  const { promise: begun, resolve: begin } = promised<void>();
  const delivery = run(one, "email", "n1", () => {
    begin();
    return sent;
  });
  await begun;
  const answer = await run(other, "email", "n1", () => assert.fail("two deliver"));
  assert.ok(answer.kind === "held" && answer.by === "one" && answer.expiresInMs > 0);
  send("sent");
  assert.deepEqual(await delivery, { kind: "done", value: "sent" });
  await nobodyLeft();
  assert.deepEqual(await run(other, "email", "n1", () => "again"), { kind: "done", value: "again" });
  assert.deepEqual(failures, [], "held by another is no failure");
});

test("those who enter the same door share the lock", async () => {
  const door = open("pod").door("slack", "n1");
  await Promise.all([door.enter(), door.enter(), door.enter()]);
  assert.deepEqual([asked, leases()], [["slack"], 1]);
  door.leave();
  await nobodyLeft();
});

test("a channel that is not covered never asks", async () => {
  const locked = open("pod");
  assert.equal(locked.covers("push"), false);
  locked.door("slack", "n1").leave();
  assert.equal(server.asked.length, 0, "nor does a delivery that never gets as far as its lock");
});

test("an act that throws frees the lock", async () => {
  await assert.rejects(
    run(open("pod"), "slack", "n1", () => Promise.reject(new Error("a bug"))),
    /a bug/,
  );
  await nobodyLeft();
});

for (const [name, trouble, reason] of [
  ["forbids", { status: 403 }, "forbidden"],
  ["fails", { status: 500 }, "failed"],
  ["hangs", "hang", "timeout"],
  ["breaks the connection", "reset", "unreachable"],
] as const) {
  test(`a server that ${name}: the delivery goes on without, counted`, async () => {
    server.trouble(() => trouble);
    const locked = open("pod", { lock: openLock("pod", 500) });
    assert.deepEqual(await run(locked, "slack", "n1", leases), { kind: "done", value: 0 });
    assert.deepEqual(failures, [`slack ${reason}`]);
  });
}

test("an outage is told once in an interval, with the number of failures, and costs only some their patience", async () => {
  let now = 0;
  const locked = open("pod", { monotonic: () => now, restMs: 1_000, tellEveryMs: 60_000 });
  await server.goAway();
  for (let n = 0; n < 10; n++) await run(locked, "slack", `n${n}`, () => "sent");
  assert.equal(failures.length, 10);
  assert.deepEqual(troubles, [{ reason: "unreachable", detail: "ECONNREFUSED", failures: 1 }]);
  assert.equal(asked.length, 1, "nine did not wait");
  now += 60_000;
  await run(locked, "slack", "n", () => "sent");
  assert.deepEqual(troubles[1], { reason: "unreachable", detail: "ECONNREFUSED", failures: 10 });
  await server.comeBack();
  now += 1_000;
  const done = await run(locked, "slack", "n", leases);
  assert.deepEqual(done, { kind: "done", value: 1 }, "it asks again after a rest");
});

test("a lock that comes too late is kept while the delivery runs, and then given back", async () => {
  const { promise: slow, resolve: answer } = promised<Hold>();
  const { promise: sent, resolve: send } = promised<string>();
  const release = mock.fn(async () => ({ kind: "released" as const }));
  const lock = { ...openLock("pod"), acquire: () => slow, release };
  const locked = open("pod", { lock, patienceMs: 20 });
  const { promise: begun, resolve: begin } = promised<void>();
  const delivery = run(locked, "slack", "n1", () => {
    begin();
    return sent;
  });
  await begun;
  assert.deepEqual(failures, ["slack timeout"]);
  answer({ kind: "acquired", key: "n1", token: 7, endsAt: 0 });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(release.mock.callCount(), 0);
  send("sent");
  assert.deepEqual(await delivery, { kind: "done", value: "sent" });
  await until(async () => (release.mock.callCount() === 1 ? true : undefined));
});

test("a long delivery keeps its lock by renewing it", async () => {
  const [one, other] = [open("one", { ttlMs: 2_000, renewMs: 100 }), openLock("other")];
  closes.push(other.close);
  await run(one, "slack", "n1", async () => {
    const endsAt = monotonic() + 2_500;
    for (let isBeyond = false; !isBeyond; ) {
      isBeyond = monotonic() > endsAt;
      assert.equal((await other.acquire("n1", 1_000)).kind, "held");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });
  assert.deepEqual(failures, []);
  await nobodyLeft();
});

test("a lock that is lost while delivering is counted, and the delivery ends as it would have", async () => {
  const locked = open("pod", { ttlMs: 1_000, renewMs: 50 });
  const done = await run(locked, "slack", "n1", async () => {
    server.edit("carillon", "notification-delivery-n1", ({ spec }) => {
      if (spec) Object.assign(spec, { holderIdentity: "thief", leaseTransitions: 1 });
    });
    await until(async () => (failures.length > 0 ? true : undefined));
    return "sent";
  });
  assert.deepEqual(done, { kind: "done", value: "sent" });
  assert.deepEqual(failures, ["slack lost"]);
  assert.equal(server.leases("carillon")[0]?.spec?.holderIdentity, "thief", "what is not ours is not freed");
});

test("the lock is the last that is asked for, and who does not get it gives back what the others granted", async () => {
  const provider: Provider = {
    name: "p",
    channels: ["slack"],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
    send: () => assert.fail("nobody sends"),
  };
  const message = { notificationId: "n", tenant: 1, attempt: 1, request: { channel: "slack" as const, content: {} } };
  const lease = { handle: 1, meanBytes: 0, endsAt: 10_000, claimedAtMs: 0, claimedAt: 0, answeredAt: 0 };
  const turn = { seq: 1, rank: 2, lease, expiresAtMs: undefined };
  const limited = { kind: "postponed" as const, waitMs: 1, reason: "a limit", isPassedOver: false };
  const admitted = async (given: Admitted, held: HeldByOther | undefined, now = 0) => {
    const seen: string[] = [];
    const guard: Guard = {
      ...NO_GUARD,
      admit: () => given,
      giveBack: (_provider, _message, ticket) => void seen.push(`gave ${ticket} back`),
    };
    const enter = async () => {
      seen.push("asked");
      return held;
    };
    const at = { guard, monotonic: () => now, leaseMarginMs: 1_000 };
    const answer = await lockedGuard({ enter, leave: () => undefined }, at).admit(provider, message, turn);
    return [typeof answer === "number" ? answer : answer.kind, ...seen];
  };
  assert.deepEqual(await admitted(limited, undefined), ["postponed"]);
  assert.deepEqual(await admitted({ kind: "expired" }, undefined), ["expired"]);
  assert.deepEqual(await admitted(7, undefined), [7, "asked"]);
  const other: HeldByOther = { kind: "held", by: "other", expiresInMs: 30_000 };
  assert.deepEqual(await admitted(7, other), ["postponed", "asked", "gave 7 back"]);
  assert.deepEqual(await admitted(7, undefined, 9_000), ["released", "asked", "gave 7 back"], "it took too long");
});

test("closing waits for the releases under way", async () => {
  const locked = createLocked({
    lock: openLock("pod"),
    channels: ["slack"],
    patienceMs: 3_000,
    monotonic,
    onFailure: () => undefined,
    onAsked: () => undefined,
    onTrouble: () => undefined,
  });
  await Promise.all(Array.from({ length: 20 }, (_, n) => run(locked, "slack", `n${n}`, () => "sent")));
  await locked.close();
  assert.deepEqual(server.leases("carillon"), []);
});

test("the metrics say how often and how long, by channel", async () => {
  const registry = new Registry();
  const metrics = createLockMetrics(registry);
  metrics.asked("slack", 0.004);
  metrics.asked("slack", 0.7);
  metrics.failed("email", "forbidden");
  metrics.failed("email", "forbidden");
  const text = await registry.metrics();
  const shown = (line: string) => assert.ok(text.includes(line), `${line} in\n${text}`);
  shown('notification_lock_acquisition_failures_total{channel="email",reason="forbidden"} 2');
  for (const [le, count] of [
    ["0.001", 0],
    ["0.005", 1],
    ["0.01", 1],
    ["0.02", 1],
    ["0.03", 1],
    ["0.05", 1],
    ["0.1", 1],
    ["0.2", 1],
    ["0.5", 1],
    ["1", 2],
    ["+Inf", 2],
  ]) {
    shown(`notification_lock_acquisition_duration_seconds_bucket{le="${le}",channel="slack"} ${count}`);
  }
  shown('notification_lock_acquisition_duration_seconds_count{channel="slack"} 2');
});
