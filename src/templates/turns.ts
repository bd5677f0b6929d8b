// Whose turn it is: tenants that wait go round in a circle, and none has all the hands there are.
//
// However much one of them asks for, another waits for no more than what is in hand.

import { createLines } from "#timing/lines.ts";

export type Turns<Job> = {
  /** False when there is no room to wait. Of several tenants that wait, each may have its share of it even then. */
  add(tenant: number, job: Job): boolean;
  /** The next in turn. It is in hand until `over`. */
  next(): Job | undefined;
  over(tenant: number): void;
  /** Takes all that wait out. */
  clear(): Job[];
};

export function createTurns<Job>({ maxWaiting, mostInHand }: { maxWaiting: number; mostInHand: number }): Turns<Job> {
  const lines = createLines<{ tenant: number; job: Job }>();
  const inHand = new Map<number, number>();
  const inHandOf = (tenant: number) => inHand.get(tenant) ?? 0;
  let waiting = 0;

  return {
    add(tenant, job) {
      const own = lines.lengthOf(tenant);
      const sharing = lines.owners() + (own === 0 ? 1 : 0);
      if (waiting >= maxWaiting && own >= maxWaiting / sharing) return false;
      lines.join(tenant, { tenant, job });
      waiting++;
      return true;
    },
    next() {
      const next = lines.next((tenant) => inHandOf(tenant) < mostInHand);
      if (!next) return undefined;
      waiting--;
      inHand.set(next.tenant, inHandOf(next.tenant) + 1);
      return next.job;
    },
    over(tenant) {
      if (inHandOf(tenant) > 1) inHand.set(tenant, inHandOf(tenant) - 1);
      else inHand.delete(tenant);
    },
    clear() {
      waiting = 0;
      return lines.clear().map(({ job }) => job);
    },
  };
}
