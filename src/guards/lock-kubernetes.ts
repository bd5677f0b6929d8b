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
// sees a lease for the first time waits a full duration, even if its holder died long ago.
//
// Every write names the resourceVersion it goes by, so that of several who try one succeeds. Releasing deletes the
// Lease, or a cluster would keep one for every notification ever sent. leaseTransitions would then start again from 0
// and a stale holder's number could be the greater one; the token is therefore the resourceVersion that the acquiring
// write got. It grows with every write to the cluster's store and survives deletions. (Kubernetes has promised
// that versions can be compared since 1.35; with etcd they always could.) leaseTransitions is kept for readers.

import { type Lease, type Leased, type LeaseSpec, openLeases } from "./kubernetes-leases.ts";
import { leaseNameOf } from "./lease-name.ts";
import type { HeldByOther, Hold, Lock, Unavailable } from "./lock.ts";

export type KubernetesLockOptions = {
  namespace: string;
  /** The pod's name. */
  identity: string;
  /** A kubeconfig file. Without it: KUBECONFIG, then ~/.kube/config, then the pod's service account. */
  kubeconfig?: string | undefined;
  /** For each request to the API server. */
  timeoutMs?: number;
  monotonic: () => number;
  /** Only written down for people to read; nothing is decided by it. */
  wallClock: () => number;
};

const TIMEOUT_MS = 5_000;
/** How often we look again when others change the lease under our hands. */
const ROUNDS = 3;
/** To forget a sighting only delays a takeover. */
const MOST_SIGHTINGS = 10_000;

export function createKubernetesLock(options: KubernetesLockOptions): Lock {
  const { namespace, identity, kubeconfig, timeoutMs = TIMEOUT_MS, monotonic, wallClock } = options;
  const leases = openLeases({ namespace, kubeconfig, timeoutMs, monotonic });
  /** The lease behind each lock in hand, as we last wrote it, and until when it is ours. */
  const held = new WeakMap<Hold, { lease: Lease; endsAt: number }>();
  /** What we saw of others' leases, and when first. */
  const sightings = new Map<string, { what: string; firstSeenAt: number }>();

  const specFor = (ttlMs: number, before?: Lease): LeaseSpec => ({
    holder: identity,
    durationSeconds: Math.ceil(ttlMs / 1000),
    transitions: before ? before.transitions + 1 : 0,
    acquiredAt: wallClock(),
    renewedAt: wallClock(),
  });

  /** How long its holder may still believe in it. */
  function leftMs({ name, uid, holder, transitions, renewTime, durationSeconds }: Lease): number {
    // Released by somebody who does not delete.
    if (!holder) return 0;
    const what = [uid, holder, transitions, renewTime].join(" ");
    const seen = sightings.get(name);
    if (seen?.what === what) return Math.max(0, seen.firstSeenAt + durationSeconds * 1000 - monotonic());
    sightings.delete(name);
    const [oldest] = sightings.keys();
    if (oldest !== undefined && sightings.size >= MOST_SIGHTINGS) sightings.delete(oldest);
    sightings.set(name, { what, firstSeenAt: monotonic() });
    return durationSeconds * 1000;
  }

  function taken(key: string, lease: Lease, endsAt: number): Hold | Unavailable {
    sightings.delete(lease.name);
    const token = Number(lease.version);
    if (!Number.isSafeInteger(token)) return { kind: "unavailable", reason: "failed", detail: "resourceVersion" };
    const hold: Hold = { kind: "acquired", key, token, endsAt };
    held.set(hold, { lease, endsAt });
    return hold;
  }

  async function acquire(key: string, ttlMs: number): Promise<Hold | HeldByOther | Unavailable> {
    const name = leaseNameOf(key);
    for (let round = 0; round < ROUNDS; round++) {
      // Most locks are free, and free ones are not there. One that we saw before probably still is.
      if (!sightings.has(name)) {
        const askedAt = monotonic();
        const created = await leases.create(name, specFor(ttlMs));
        if (created.kind === "ok") return taken(key, created.lease, askedAt + ttlMs);
        if (created.kind === "unavailable") return created;
      }
      const found = await leases.read(name);
      if (found.kind === "unavailable") return found;
      if (found.kind === "missing") {
        sightings.delete(name);
        continue;
      }
      const expiresInMs = leftMs(found.lease);
      if (expiresInMs > 0) return { kind: "held", by: found.lease.holder, expiresInMs };
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
      const found = await leases.read(leaseNameOf(key));
      if (found.kind === "unavailable") return found;
      if (found.kind === "missing") return { kind: "free" };
      const expiresInMs = leftMs(found.lease);
      if (expiresInMs === 0) return { kind: "free" };
      return { kind: "held", by: found.lease.holder, expiresInMs };
    },
    close: () => leases.close(),
  } satisfies Lock;
}
