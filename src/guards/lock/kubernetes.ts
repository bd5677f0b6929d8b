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
// would know it to be his. So it is looked for until it can no longer come, and deleted (see lost-leases.ts).
//
// Every write names the resourceVersion it goes by, so that of several who try one succeeds. Releasing deletes the
// Lease, or a cluster would keep one for every notification ever sent. leaseTransitions would then start again from 0
// and a stale holder's number could be the greater one; the token is therefore the resourceVersion that the acquiring
// write got. It grows with every write to the cluster's store and survives deletions. (Kubernetes has promised
// that versions can be compared since 1.35; with etcd they always could.) leaseTransitions is kept for readers.

import { createHolds, ROUNDS } from "./kubernetes-holds.ts";
import { type Lease, type LeaseSpec, openLeases } from "./kubernetes-leases.ts";
import { leaseNameOf } from "./lease-name.ts";
import { createSightings } from "./lease-sightings.ts";
import type { HeldByOther, Hold, Lock, Unavailable } from "./lock.ts";
import { createLost } from "./lost-leases.ts";

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
/** With a duration of 30 s, and the queue's own 35 s before anybody else wants the lock, a dead holder's is free by then. */
const LOOK_MS = 5_000;
/** Two minutes in all: an API server gives a request up after one. */
const SEARCH_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000];

export function createKubernetesLock(options: KubernetesLockOptions): Lock {
  const { namespace, identity, kubeconfig, timeoutMs = TIMEOUT_MS, monotonic, wallClock } = options;
  const { lookMs = LOOK_MS, searchMs = SEARCH_MS } = options;
  const leases = openLeases({ namespace, kubeconfig, timeoutMs, monotonic });
  const specFor = (ttlMs: number, before?: Lease): LeaseSpec => ({
    holder: identity,
    durationSeconds: Math.ceil(ttlMs / 1000),
    transitions: before ? before.transitions + 1 : 0,
    acquiredAt: wallClock(),
    renewedAt: wallClock(),
  });
  const holds = createHolds({ leases, identity, monotonic, specFor });
  const sightings = createSightings(monotonic);
  const lost = createLost(leases, identity, searchMs);
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
    looking = every(lookMs, look);
    looking.unref();
  }

  function taken(key: string, lease: Lease, endsAt: number): Hold | Unavailable {
    sightings.forget(lease.name);
    const token = Number(lease.version);
    if (!Number.isSafeInteger(token)) return { kind: "unavailable", reason: "failed", detail: "resourceVersion" };
    const hold: Hold = { kind: "acquired", key, token, endsAt };
    holds.add(hold, lease);
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
          if (created.reason === "timeout" || created.reason === "unreachable") void lost.search(name, spec);
          return created;
        }
      }
      const found = await leases.read(name);
      if (found.kind === "unavailable") return found;
      if (found.kind === "missing") {
        sightings.forget(name);
        continue;
      }
      const expiresInMs = lost.isOne(found.lease) ? 0 : sightings.leftMs(found.lease);
      if (expiresInMs > 0) return { kind: "held", by: found.lease.holder, expiresInMs };
      lost.forget(name);
      const askedAt = monotonic();
      const replaced = await leases.replace(found.lease, specFor(ttlMs, found.lease));
      if (replaced.kind === "ok") return taken(key, replaced.lease, askedAt + ttlMs);
      if (replaced.kind === "unavailable") return replaced;
    }
    return { kind: "held", by: "another", expiresInMs: ttlMs };
  }

  return {
    acquire,
    renew: holds.renew,
    release: holds.release,
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
      lost.close();
      clearInterval(looking);
      return leases.close();
    },
  } satisfies Lock;
}

/** Not again while it is still at it. */
function every(ms: number, act: () => Promise<void>): NodeJS.Timeout {
  let isActing = false;
  return setInterval(() => {
    if (isActing) return;
    isActing = true;
    void act().finally(() => {
      isActing = false;
    });
  }, ms);
}
