// Locks as Leases pass the suite of all locks: on a stand-in, and with KUBECONFIG set on a real API server as well, in
// the namespace KUBERNETES_TEST_NAMESPACE (default `default`). What a server can do wrong is tried on the stand-in.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import { createKubernetesLock, type KubernetesLockOptions } from "#guards/lock/kubernetes.ts";
import { leaseNameOf } from "#guards/lock/lease-name.ts";
import type { Hold, Lock } from "#guards/lock/lock.ts";
import { lockConformance } from "../../conformance/lock.ts";
import { type KubernetesStandIn, startKubernetesStandIn } from "../../support/kubernetes-stand-in.ts";
import { until } from "../../support/until.ts";

const clocks = { monotonic: () => performance.now(), wallClock: Date.now };
/** A Lease counts in whole seconds. */
const SHORT_MS = 1_000;
const LONG_MS = 30_000;

lockConformance("Kubernetes stand-in", SHORT_MS, async () => {
  const server = await startKubernetesStandIn();
  const gone = await startKubernetesStandIn();
  await gone.goAway();
  const at = (kubeconfig: string) => ({ kubeconfig, namespace: "carillon", ...clocks });
  return {
    open: (identity) => createKubernetesLock({ ...at(server.kubeconfig), identity }),
    openBroken: () => createKubernetesLock({ ...at(gone.kubeconfig), identity: "nobody" }),
    async stop() {
      const left = server.leases("carillon");
      await Promise.all([server.close(), gone.close()]);
      assert.deepEqual(left, [], "released locks leave nothing behind");
    },
  };
});

const { KUBECONFIG, KUBERNETES_TEST_NAMESPACE: namespace = "default" } = process.env;
if (KUBECONFIG) {
  lockConformance("Kubernetes", SHORT_MS, async () => {
    const gone = await startKubernetesStandIn();
    await gone.goAway();
    return {
      open: (identity) => createKubernetesLock({ namespace, identity, ...clocks }),
      openBroken: () => createKubernetesLock({ kubeconfig: gone.kubeconfig, namespace, identity: "nobody", ...clocks }),
      stop: () => gone.close(),
    };
  });
}

let server: KubernetesStandIn;
let locks: Lock[];
beforeEach(async () => {
  server = await startKubernetesStandIn(["carillon", "other"]);
  locks = [];
});
afterEach(async () => {
  await Promise.all(locks.map((lock) => lock.close()));
  await server.close();
});

type Clocks = Partial<
  Pick<KubernetesLockOptions, "monotonic" | "wallClock" | "timeoutMs" | "namespace" | "lookMs" | "searchMs">
>;
function open(identity: string, more: Clocks = {}): Lock {
  const { kubeconfig } = server;
  const lock = createKubernetesLock({ kubeconfig, namespace: "carillon", identity, ...clocks, ...more });
  locks.push(lock);
  return lock;
}
async function acquired(lock: Lock, key: string, ttlMs = LONG_MS): Promise<Hold> {
  const answer = await lock.acquire(key, ttlMs);
  assert.equal(answer.kind, "acquired", JSON.stringify(answer));
  return answer as Hold;
}
const only = () => {
  const [lease] = server.leases("carillon");
  assert.ok(lease);
  return lease;
};

test("the Lease says who holds it, for how long, and how often it changed hands", async () => {
  let now = 0;
  const at = Date.parse("2026-01-02T03:04:05.678Z");
  const pod = open("pod-1", { wallClock: () => at });
  await acquired(pod, "018f-a", LONG_MS);
  const { metadata, spec } = only();
  assert.equal(metadata.name, "notification-delivery-018f-a");
  assert.deepEqual(metadata.labels, { "app.kubernetes.io/managed-by": "carillon" });
  assert.deepEqual(spec, {
    holderIdentity: "pod-1",
    leaseDurationSeconds: 30,
    leaseTransitions: 0,
    acquireTime: "2026-01-02T03:04:05.678000Z",
    renewTime: "2026-01-02T03:04:05.678000Z",
  });
  const other = open("pod-2", { monotonic: () => now });
  assert.equal((await other.acquire("018f-a", LONG_MS)).kind, "held");
  now += 30_000;
  await acquired(other, "018f-a");
  assert.equal(only().spec?.holderIdentity, "pod-2");
  assert.equal(only().spec?.leaseTransitions, 1);
});

test("names are DNS labels of at most 63 characters, and a key that is one already is kept", () => {
  const id = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
  assert.equal(leaseNameOf(id), `notification-delivery-${id}`);
  const odd = ["", "A", "a", "a.b", "a-b", "a--b", "Ünïcode", "../x", "-a", "a-", id + id, "x".repeat(500), "日本"];
  // A key that looks like another key's name with its hash.
  odd.push(leaseNameOf("A").replace("notification-delivery-", ""));
  const names = odd.map(leaseNameOf);
  for (const name of names) assert.match(name, /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
  assert.equal(new Set(names).size, odd.length);
});

for (const skewMs of [10_000, -10_000]) {
  test(`a contender whose clock is ${skewMs / 1000} s off waits a full duration from what it saw, no less`, async () => {
    let now = 0;
    const holder = open("holder", { wallClock: () => 1e12 });
    const contender = open("contender", { wallClock: () => 1e12 + skewMs, monotonic: () => now });
    const hold = await acquired(holder, "k", 5_000);
    assert.deepEqual(await contender.acquire("k", 5_000), { kind: "held", by: "holder", expiresInMs: 5_000 });
    now = 4_999;
    assert.deepEqual(await contender.acquire("k", 5_000), { kind: "held", by: "holder", expiresInMs: 1 });
    server.edit("carillon", "notification-delivery-k", ({ spec }) => {
      if (spec) spec.renewTime = "2001-09-09T01:46:44.999000Z";
    });
    now = 5_000;
    assert.deepEqual(await contender.acquire("k", 5_000), { kind: "held", by: "holder", expiresInMs: 5_000 });
    now = 10_000;
    const { token } = await acquired(contender, "k", 5_000);
    assert.ok(token > hold.token);
  });
}

const lists = () => server.asked.filter(({ selector }) => selector === "app.kubernetes.io/managed-by=carillon").length;

test("whoever ran before the holder died takes its lease over when it has run out, whoever else saw it first", async () => {
  let now = 0;
  const others = Array.from({ length: 6 }, (_, n) => open(`pod-${n}`, { monotonic: () => now, lookMs: 5 }));
  for (const pod of others) assert.deepEqual(await pod.holder("start"), { kind: "free" });
  await acquired(open("holder"), "k");
  const before = lists();
  await until(async () => (lists() >= before + 3 * others.length ? true : undefined));
  now += 29_999;
  assert.deepEqual(await others[0]?.acquire("k", LONG_MS), { kind: "held", by: "holder", expiresInMs: 1 });
  now += 1;
  const last = others.at(-1);
  assert.ok(last);
  await acquired(last, "k");
});

test("who may not list leases finds them as they come", async () => {
  let now = 0;
  server.trouble(({ selector }) => (selector ? { status: 403 } : undefined));
  await acquired(open("holder"), "k");
  const pod = open("pod", { monotonic: () => now, lookMs: 5 });
  assert.deepEqual(await pod.holder("start"), { kind: "free" });
  await until(async () => (lists() > 3 ? true : undefined));
  assert.deepEqual(await pod.acquire("k", LONG_MS), { kind: "held", by: "holder", expiresInMs: LONG_MS });
  now += LONG_MS;
  await acquired(pod, "k");
});

test("a list that is none, from a proxy perhaps, harms nobody", async () => {
  server.trouble(({ selector }) => (selector ? { status: 200 } : undefined));
  const pod = open("pod", { lookMs: 5 });
  await acquired(pod, "k");
  await until(async () => (lists() > 3 ? true : undefined));
  await acquired(pod, "other");
});

test("leases that nobody wants any more are removed, and others' are left alone", async () => {
  let now = 0;
  assert.deepEqual(await open("pod", { monotonic: () => now, lookMs: 5 }).holder("start"), { kind: "free" });
  const holder = open("holder");
  const living = await acquired(holder, "living");
  await acquired(holder, "dead");
  server.edit("carillon", "notification-delivery-dead", ({ spec }) => {
    if (spec) spec.holderIdentity = "gone";
  });
  const looked = async () => {
    const before = lists();
    await until(async () => (lists() >= before + 2 ? true : undefined));
  };
  await looked();
  now += 10 * LONG_MS - 1;
  assert.equal((await holder.renew(living, LONG_MS)).kind, "renewed");
  await looked();
  assert.equal(server.leases("carillon").length, 2);
  now += 1;
  await until(async () => (server.leases("carillon").length === 1 ? true : undefined));
  assert.equal(only().spec?.holderIdentity, "holder");
});

test("a lease whose making was never answered is found and removed, though it comes late", async () => {
  server.trouble(({ method }) => (method === "POST" ? "hang" : undefined));
  const pod = open("pod", { timeoutMs: 1_000, searchMs: Array.from({ length: 500 }, () => 10), wallClock: () => 1e12 });
  assert.deepEqual(await pod.acquire("k", LONG_MS), { kind: "unavailable", reason: "timeout" });
  server.trouble(undefined);
  // What the store does when it thaws, here done by another process of that name.
  await acquired(open("pod", { wallClock: () => 1e12 }), "k");
  await until(async () => (server.leases("carillon").length === 0 ? true : undefined));
});

test("a lease whose making was never answered is its maker's own when he asks again, and nobody else's", async () => {
  server.trouble(({ method }) => (method === "POST" ? "obey-then-hang" : undefined));
  const pod = open("pod", { timeoutMs: 2_000, searchMs: [LONG_MS], wallClock: () => 1e12 });
  assert.deepEqual(await pod.acquire("k", LONG_MS), { kind: "unavailable", reason: "timeout" });
  server.trouble(undefined);
  assert.equal((await open("other").acquire("k", LONG_MS)).kind, "held");
  assert.equal((await open("pod", { wallClock: () => 1e12 }).acquire("k", LONG_MS)).kind, "held", "another process");
  const hold = await acquired(pod, "k");
  assert.deepEqual(await pod.release(hold), { kind: "released" });
});

test("somebody's label neither prolongs a lease nor costs its holder the lock", async () => {
  let now = 0;
  const contender = open("contender", { monotonic: () => now });
  const holder = open("holder");
  const hold = await acquired(holder, "k");
  const label = () =>
    server.edit("carillon", "notification-delivery-k", ({ metadata }) => {
      metadata.labels = { ...metadata.labels, team: "blue" };
    });
  assert.equal((await contender.acquire("k", LONG_MS)).kind, "held");
  label();
  now += 29_999;
  assert.deepEqual(await contender.acquire("k", LONG_MS), { kind: "held", by: "holder", expiresInMs: 1 });
  assert.equal((await holder.renew(hold, LONG_MS)).kind, "renewed");
  assert.equal(only().metadata.labels?.team, "blue");
  label();
  assert.deepEqual(await holder.release(hold), { kind: "released" });
});

test("a renewal whose answer was lost is no reason to lose the lock", async () => {
  const holder = open("holder", { timeoutMs: 1_000 });
  const hold = await acquired(holder, "k");
  server.trouble(({ method }) => (method === "PUT" ? "obey-then-hang" : undefined));
  assert.deepEqual(await holder.renew(hold, LONG_MS), { kind: "unavailable", reason: "timeout" });
  server.trouble(undefined);
  assert.equal((await holder.renew(hold, LONG_MS)).kind, "renewed");
  assert.deepEqual(await holder.release(hold), { kind: "released" });
});

test("a lease that was deleted and made anew by another is not ours to renew or to release", async () => {
  const [first, second] = [open("same-name"), open("same-name")];
  const stale = await acquired(first, "k");
  const [lease] = server.leases("carillon");
  assert.ok(lease);
  // The first one's process hung; kubectl deleted the lease; another process of the same name took it.
  server.edit("carillon", lease.metadata.name, ({ metadata }) => {
    metadata.uid = randomUUID();
  });
  assert.deepEqual(await first.renew(stale, LONG_MS), { kind: "lost" });
  assert.deepEqual(await first.release(stale), { kind: "lost" });
  assert.equal(server.leases("carillon").length, 1);
  assert.equal((await second.acquire("k", LONG_MS)).kind, "held");
});

test("a lease that another client released by emptying it is taken at once", async () => {
  await acquired(open("client-go"), "k");
  server.edit("carillon", "notification-delivery-k", ({ spec }) => {
    if (spec) spec.holderIdentity = "";
  });
  const pod = open("pod");
  assert.deepEqual(await pod.holder("k"), { kind: "free" });
  await acquired(pod, "k");
  assert.equal(only().spec?.leaseTransitions, 1);
});

test("the same key in two namespaces is two locks", async () => {
  const [here, there] = [open("here"), open("there", { namespace: "other" })];
  await acquired(here, "k");
  await acquired(there, "k");
  assert.equal(server.leases("carillon").length, 1);
  assert.equal(server.leases("other").length, 1);
});

test("a namespace that does not exist is a value", async () => {
  const answer = await open("pod", { namespace: "nowhere" }).acquire("k", LONG_MS);
  assert.deepEqual(answer, { kind: "unavailable", reason: "failed", detail: "no such namespace" });
});

for (const [status, reason] of [
  [401, "forbidden"],
  [403, "forbidden"],
  [429, "overloaded"],
  [500, "failed"],
  [503, "overloaded"],
] as const) {
  test(`an answer of ${status} is unavailable: ${reason}, for every verb, and tells no secret`, async () => {
    const pod = open("pod");
    const hold = await acquired(pod, "k");
    server.trouble(() => ({ status }));
    const answers = [
      await pod.acquire("other", LONG_MS),
      await pod.holder("k"),
      await pod.renew(hold, LONG_MS),
      await pod.release(hold),
    ];
    for (const answer of answers) assert.deepEqual(answer, { kind: "unavailable", reason, detail: String(status) });
  });
}

for (const status of [409, 410]) {
  test(`an answer of ${status} to a renewal means to look again`, async () => {
    const pod = open("pod");
    const hold = await acquired(pod, "k");
    let refusals = 1;
    server.trouble(({ method }) => (method !== "GET" && refusals-- > 0 ? { status } : undefined));
    assert.equal((await pod.renew(hold, LONG_MS)).kind, "renewed");
    refusals = 1;
    assert.deepEqual(await pod.release(hold), { kind: "released" });
  });

  test(`a server that answers everything with ${status} grants nothing`, async () => {
    server.trouble(() => ({ status }));
    assert.notEqual((await open("pod").acquire("k", LONG_MS)).kind, "acquired");
  });
}

test("a server that is slow is unavailable: timeout", async () => {
  server.trouble(() => "hang");
  const answer = await open("pod", { timeoutMs: 100 }).acquire("k", LONG_MS);
  assert.deepEqual(answer, { kind: "unavailable", reason: "timeout" });
});

test("a server that breaks the connection is unavailable; back again, it serves", async () => {
  const pod = open("pod");
  server.trouble(() => "reset");
  const answer = await pod.acquire("k", LONG_MS);
  assert.ok(answer.kind === "unavailable" && answer.reason === "unreachable");
  server.trouble(undefined);
  await server.goAway();
  const gone = await pod.acquire("k", LONG_MS);
  assert.ok(gone.kind === "unavailable" && gone.reason === "unreachable");
  await server.comeBack();
  await acquired(pod, "k");
});

test("a kubeconfig that is not there is a value, and is read when it is there", async () => {
  const { kubeconfig } = server;
  const pod = createKubernetesLock({ kubeconfig: `${kubeconfig}.no`, namespace: "n", identity: "pod", ...clocks });
  assert.deepEqual(await pod.acquire("k", LONG_MS), { kind: "unavailable", reason: "failed", detail: "ENOENT" });
});

test("requests share connections", async () => {
  const pod = open("pod");
  for (let n = 0; n < 20; n++) await pod.release(await acquired(pod, `k${n}`));
  assert.equal(server.asked.length, 40);
  assert.ok(server.connections() <= 2, `${server.connections()} connections`);
  assert.ok(server.asked.every(({ token }) => token === "a-service-account-token"));
  assert.ok(server.asked.every(({ httpVersion }) => httpVersion === "2.0"));
});

test("the client library is loaded only by the first use", () => {
  const path = new URL("../../../src/guards/lock/kubernetes.ts", import.meta.url).href;
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
    const { createKubernetesLock } = await import(${JSON.stringify(path)});
    createKubernetesLock({ namespace: "n", identity: "i", monotonic: () => 0, wallClock: () => 0 });
    console.log(loaded.length, loaded.filter((url) => url.includes("@kubernetes")).length);`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  assert.match(stdout, /^\d+ 0\n$/, stderr);
});
