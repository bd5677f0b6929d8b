// The locks in hand, with the lease behind each: renewing and releasing them.

import type { Lease, Leased, LeaseSpec, Leases } from "./kubernetes-leases.ts";
import type { Hold, Lock, Unavailable } from "./lock.ts";

/** How often we look again when others change the lease under our hands. */
export const ROUNDS = 3;

export type Holds = Pick<Lock, "renew" | "release"> & { add(hold: Hold, lease: Lease): void };

type Options = {
  leases: Leases;
  identity: string;
  monotonic: () => number;
  specFor: (ttlMs: number) => LeaseSpec;
};

export function createHolds({ leases, identity, monotonic, specFor }: Options): Holds {
  /** The lease behind each lock in hand, as we last wrote it, and until when it is ours. */
  const held = new WeakMap<Hold, { lease: Lease; endsAt: number }>();

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
    add: (hold, lease) => void held.set(hold, { lease, endsAt: hold.endsAt }),
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
  };
}
