// Locks as Leases of coordination.k8s.io/v1: kept apart from the database, and there for kubectl to see.
//
// Clocks of different nodes differ, so no instant written by one is compared with the clock of another. A contender
// notes on its own monotonic clock when it first saw a renewTime, and only when that same renewTime has stood there for
// leaseDurationSeconds does it take the lease over, as client-go does. The holder for its part counts from before it
// asked. The server stored the renewal after that, and the contender saw it later still:
//
//   holder      asks ─────────────── its time ends
//   server           stores
//   contender               sees ─────────────── takes over
//
// So there are never two, whatever the wall clocks say, as long as a second is about a second everywhere. The price: who
// sees a lease for the first time waits a full duration, even if its holder died long ago. Therefore all leases are looked
// at every few seconds, wanted or not (see lease-sightings.ts).
//
// A create whose answer was lost may be stored all the same, even much later, when the server's own store was away. Nobody
// would know it to be his. So it is looked for until it can no longer come, and deleted.
//
// Every write names the resourceVersion it goes by, so that of several who try one succeeds. Releasing deletes the
// Lease, or a cluster would keep one for every notification ever sent. leaseTransitions would then start again from 0
// and a stale holder's number could be the greater one; the token is therefore the resourceVersion that the acquiring
// write got. It grows with every write to the cluster's store and survives deletions. (Kubernetes has promised
// that versions can be compared since 1.35; with etcd they always could.) leaseTransitions is kept for readers.

import { setTimeout as sleep } from "node:timers/promises";
import { type Lease, type Leased, type LeaseSpec, openLeases } from "./kubernetes-leases.ts";
import { leaseNameOf } from "./lease-name.ts";
import { createSightings } from "./lease-sightings.ts";
import type { HeldByOther, Hold, Lock, Unavailable } from "./lock.ts";

export type KubernetesLockOptions = {
  namespace: string;
  /** The pod's name. */
  identity: string;
  /** A kubeconfig file. Without it: KUBECONFIG, then ~/.kube/config, then the pod's service account. */
  kubeconfig?: string | undefined;
  /** For each request to the API server. */
  timeoutMs?: number;
  /** How often all leases are looked at. */
  lookMs?: number;
  /** After a create whose answer was lost: when to look for it, one after the other. */
  searchMs?: readonly number[];
  monotonic: () => number;
  /** Only written down for people to read; nothing is decided by it. */
  wallClock: () => number;
};

const TIMEOUT_MS = 5_000;
/** How often we look again when others change the lease under our hands. */
const ROUNDS = 3;
/** With a duration of 30 s, and the queue's own 35 s before anybody else wants the lock, a dead holder's is free by then. */
const LOOK_MS = 5_000;
/** Two minutes in all: an API server gives a request up after one. */
const SEARCH_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000];

export function createKubernetesLock(options: KubernetesLockOptions): Lock {
  const { namespace, identity, kubeconfig, timeoutMs = TIMEOUT_MS, monotonic, wallClock } = options;
  const { lookMs = LOOK_MS, searchMs = SEARCH_MS } = options;
  const leases = openLeases({ namespace, kubeconfig, timeoutMs, monotonic });
  /** The lease behind each lock in hand, as we last wrote it, and until when it is ours. */
  const held = new WeakMap<Hold, { lease: Lease; endsAt: number }>();
  const sightings = createSightings(monotonic);
  /** Creates whose answer was lost, by name: what we wrote. */
  const lost = new Map<string, LeaseSpec>();
  let isClosed = false;

  async function look(): Promise<void> {
    const all = await leases.list();
    if (all.kind !== "ok") return;
    for (const abandoned of sightings.seeAll(all.leases, all.version)) await leases.remove(abandoned);
  }
  let looking: NodeJS.Timeout | undefined;
  /** From the first use on: who does not use it does not load the client's library. */
  function keepLooking(): void {
    if (looking || isClosed) return;
    let isLooking = false;
    looking = setInterval(() => {
      if (isLooking) return;
      isLooking = true;
      void look().finally(() => {
        isLooking = false;
      });
    }, lookMs);
    looking.unref();
  }

  /** We made it ourselves, and were never told. */
  const isLost = ({ name, holder, transitions, renewTime }: Lease): boolean => {
    const spec = lost.get(name);
    return spec !== undefined && holder === identity && transitions === 0 && Date.parse(renewTime) === spec.renewedAt;
  };

  async function search(name: string, spec: LeaseSpec): Promise<void> {
    lost.set(name, spec);
    for (const ms of searchMs) {
      await sleep(ms, undefined, { ref: false });
      // Somebody of ours wants it again, and has looked for himself; or all is over.
      if (isClosed || lost.get(name) !== spec) return;
      const found = await leases.read(name);
      if (found.kind !== "ok") continue;
      if (isLost(found.lease)) await leases.remove(found.lease);
      break;
    }
    if (lost.get(name) === spec) lost.delete(name);
  }

  const specFor = (ttlMs: number, before?: Lease): LeaseSpec => ({
    holder: identity,
    durationSeconds: Math.ceil(ttlMs / 1000),
    transitions: before ? before.transitions + 1 : 0,
    acquiredAt: wallClock(),
    renewedAt: wallClock(),
  });

  function taken(key: string, lease: Lease, endsAt: number): Hold | Unavailable {
    sightings.forget(lease.name);
    const token = Number(lease.version);
    if (!Number.isSafeInteger(token)) return { kind: "unavailable", reason: "failed", detail: "resourceVersion" };
    const hold: Hold = { kind: "acquired", key, token, endsAt };
    held.set(hold, { lease, endsAt });
    return hold;
  }

  async function acquire(key: string, ttlMs: number): Promise<Hold | HeldByOther | Unavailable> {
    keepLooking();
    const name = leaseNameOf(key);
    for (let round = 0; round < ROUNDS; round++) {
      // Most locks are free, and free ones are not there. One that we saw before probably still is.
      if (!sightings.has(name)) {
        const askedAt = monotonic();
        const spec = specFor(ttlMs);
        const created = await leases.create(name, spec);
        if (created.kind === "ok") return taken(key, created.lease, askedAt + ttlMs);
        if (created.kind === "unavailable") {
          if (created.reason === "timeout" || created.reason === "unreachable") void search(name, spec);
          return created;
        }
      }
      const found = await leases.read(name);
      if (found.kind === "unavailable") return found;
      if (found.kind === "missing") {
        sightings.forget(name);
        continue;
      }
      const expiresInMs = isLost(found.lease) ? 0 : sightings.leftMs(found.lease);
      if (expiresInMs > 0) return { kind: "held", by: found.lease.holder, expiresInMs };
      lost.delete(name);
      const askedAt = monotonic();
      const replaced = await leases.replace(found.lease, specFor(ttlMs, found.lease));
      if (replaced.kind === "ok") return taken(key, replaced.lease, askedAt + ttlMs);
      if (replaced.kind === "unavailable") return replaced;
    }
    return { kind: "held", by: "another", expiresInMs: ttlMs };
  }

  /**
   * What the server has, if it is still ours: a write of ours whose answer was lost, or somebody's label, makes the
   * version a newer one without a change of holder. Whoever takes over counts the transition.
   */
  async function stillOurs(lease: Lease): Promise<Leased | { kind: "lost" } | Unavailable> {
    const found = await leases.read(lease.name);
    if (found.kind === "unavailable") return found;
    const isOurs =
      found.kind === "ok" &&
      found.lease.uid === lease.uid &&
      found.lease.holder === identity &&
      found.lease.transitions === lease.transitions;
    return isOurs ? found : { kind: "lost" };
  }

  return {
    acquire,
    async renew(hold, ttlMs) {
      const ours = held.get(hold);
      let lease = ours?.lease;
      for (let round = 0; ours && lease && round < ROUNDS; round++) {
        const askedAt = monotonic();
        // Others may be taking it over.
        if (askedAt >= ours.endsAt) break;
        const { acquiredAt: _, ...spec } = specFor(ttlMs);
        const renewed = await leases.replace(lease, { ...spec, transitions: lease.transitions });
        if (renewed.kind === "unavailable") return renewed;
        if (renewed.kind === "missing") break;
        if (renewed.kind === "ok") {
          const endsAt = askedAt + ttlMs;
          held.set(hold, { lease: renewed.lease, endsAt });
          return { kind: "renewed", endsAt };
        }
        const current = await stillOurs(lease);
        if (current.kind === "unavailable") return current;
        lease = current.kind === "ok" ? current.lease : undefined;
      }
      held.delete(hold);
      return { kind: "lost" };
    },
    async release(hold) {
      let lease = held.get(hold)?.lease;
      held.delete(hold);
      for (let round = 0; lease && round < ROUNDS; round++) {
        const removed = await leases.remove(lease);
        if (removed.kind === "unavailable") return removed;
        if (removed.kind === "removed") return { kind: "released" };
        if (removed.kind === "missing") break;
        const current = await stillOurs(lease);
        if (current.kind === "unavailable") return current;
        lease = current.kind === "ok" ? current.lease : undefined;
      }
      return { kind: "lost" };
    },
    async holder(key) {
      keepLooking();
      const found = await leases.read(leaseNameOf(key));
      if (found.kind === "unavailable") return found;
      if (found.kind === "missing") return { kind: "free" };
      const expiresInMs = sightings.leftMs(found.lease);
      if (expiresInMs === 0) return { kind: "free" };
      return { kind: "held", by: found.lease.holder, expiresInMs };
    },
    close() {
      isClosed = true;
      clearInterval(looking);
      return leases.close();
    },
  } satisfies Lock;
}
