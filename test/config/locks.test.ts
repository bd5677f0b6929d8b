// Whether deliveries are locked: the switch, the kind, the pod.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LOCKED_CHANNELS, LOCKING, resolveLocks } from "#config/locks.ts";

const channels = LOCKED_CHANNELS;
const pod = { KUBERNETES_SERVICE_HOST: "10.0.0.1", POD_NAMESPACE: "mail", POD_NAME: "carillon-0" };
const kubernetes = { kind: "kubernetes", channels, namespace: "mail", identity: "carillon-0" };
const postgres = { kind: "postgres", channels };
const off = { kind: "off" };

test("locks are off unless asked for, in a pod too", () => {
  assert.deepEqual(resolveLocks(undefined, undefined, pod), { locks: off, faults: [] });
  assert.deepEqual(resolveLocks("off", undefined, {}), { locks: off, faults: [] });
});

test("a kind alone switches them on", () => {
  assert.deepEqual(resolveLocks("postgres", undefined, pod), { locks: postgres, faults: [] });
  assert.deepEqual(resolveLocks("kubernetes", undefined, pod), { locks: kubernetes, faults: [] });
});

test("the switch alone takes Kubernetes in a pod and PostgreSQL elsewhere", () => {
  const on = { USE_DISTRIBUTED_LOCKING: "true" };
  assert.deepEqual(resolveLocks(undefined, undefined, { ...pod, ...on }), { locks: kubernetes, faults: [] });
  assert.deepEqual(resolveLocks(undefined, undefined, on), { locks: postgres, faults: [] });
});

test("the switch set to false wins over any kind", () => {
  const env = { ...pod, USE_DISTRIBUTED_LOCKING: "false" };
  assert.deepEqual(resolveLocks("kubernetes", undefined, env), { locks: off, faults: [] });
});

test("what contradicts itself or cannot be read is a fault", () => {
  const keys = (...given: Parameters<typeof resolveLocks>) => resolveLocks(...given).faults.map(({ path }) => path);
  assert.deepEqual(keys("off", undefined, { USE_DISTRIBUTED_LOCKING: "true" }), ["CARILLON_LOCKS"]);
  assert.deepEqual(keys(undefined, undefined, { USE_DISTRIBUTED_LOCKING: "yes" }), ["USE_DISTRIBUTED_LOCKING"]);
  assert.deepEqual(keys("kubernetes", undefined, {}), ["POD_NAMESPACE"]);
  assert.deepEqual(keys("kubernetes", undefined, { POD_NAMESPACE: "Not A Label" }), ["POD_NAMESPACE"]);
  assert.equal(LOCKING.locks.read("redis"), undefined);
  assert.equal(LOCKING.lockChannels.read("slack,fax"), undefined);
  assert.equal(LOCKING.lockChannels.read(""), undefined);
});

test("the locked channels can be chosen", () => {
  assert.deepEqual(LOCKING.lockChannels.read("sms, slack"), ["sms", "slack"]);
  assert.deepEqual(LOCKING.lockChannels.read(["push"]), ["push"]);
  assert.deepEqual(resolveLocks("postgres", ["sms"], {}).locks, { kind: "postgres", channels: ["sms"] });
});
