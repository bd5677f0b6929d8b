// Creates whose answer was lost. Such a lease may be stored all the same, even much later, and nobody would know it to be
// his: it is looked for until it can no longer come, and deleted.

import { setTimeout as sleep } from "node:timers/promises";
import type { Lease, LeaseSpec, Leases } from "./kubernetes-leases.ts";

export type Lost = {
  /** We made it ourselves, and were never told. */
  isOne(lease: Lease): boolean;
  search(name: string, spec: LeaseSpec): Promise<void>;
  /** Somebody of ours wants it again, and has looked for himself. */
  forget(name: string): void;
  close(): void;
};

export function createLost(
  leases: Pick<Leases, "read" | "remove">,
  identity: string,
  searchMs: readonly number[],
): Lost {
  /** By name: what we wrote. */
  const lost = new Map<string, LeaseSpec>();
  let isClosed = false;

  const isOne = ({ name, holder, transitions, renewTime }: Lease): boolean => {
    const spec = lost.get(name);
    return spec !== undefined && holder === identity && transitions === 0 && Date.parse(renewTime) === spec.renewedAt;
  };

  return {
    isOne,
    async search(name, spec) {
      lost.set(name, spec);
      for (const ms of searchMs) {
        await sleep(ms, undefined, { ref: false });
        if (isClosed || lost.get(name) !== spec) return;
        const found = await leases.read(name);
        if (found.kind !== "ok") continue;
        if (isOne(found.lease)) await leases.remove(found.lease);
        break;
      }
      if (lost.get(name) === spec) lost.delete(name);
    },
    forget: (name) => void lost.delete(name),
    close() {
      isClosed = true;
    },
  };
}
