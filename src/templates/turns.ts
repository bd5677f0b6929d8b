// Whose turn it is: the higher lane first, and in a lane tenants go round in a circle; none has all the hands there are.
//
// However much one of them asks for, another of the same lane waits for no more than what is in hand. The last hand is left to
// others whatever their lane, so that not even a flood of what is urgent has all of them.

import { PRIORITIES } from "#domain/priority.ts";
import { createLines } from "#timing/lines.ts";

export type Turns<Job> = {
  /** False when there is no room to wait. Of several tenants that wait, each may have its share of it even then. */
  add(tenant: number, rank: number, job: Job): boolean;
  /** The next in turn. It is in hand until `over`. */
  next(): Job | undefined;
  over(tenant: number): void;
  /** Takes all that wait out. */
  clear(): Job[];
};

export function createTurns<Job>({ maxWaiting, mostInHand }: { maxWaiting: number; mostInHand: number }): Turns<Job> {
  const lanes = PRIORITIES.map(() => createLines<{ tenant: number; job: Job }>());
  const waiting = createCounts();
  const inHand = createCounts();

  return {
    add(tenant, rank, job) {
      const own = waiting.of(tenant);
      const sharing = waiting.size() + (own === 0 ? 1 : 0);
      if (waiting.total() >= maxWaiting && own >= maxWaiting / sharing) return false;
      lanes[rank]?.join(tenant, { tenant, job });
      waiting.add(tenant, 1);
      return true;
    },
    next() {
      for (const lines of lanes) {
        const next = lines.next((tenant) => inHand.of(tenant) < mostInHand);
        if (!next) continue;
        waiting.add(next.tenant, -1);
        inHand.add(next.tenant, 1);
        return next.job;
      }
      return undefined;
    },
    over: (tenant) => inHand.add(tenant, -1),
    clear() {
      waiting.clear();
      return lanes.flatMap((lines) => lines.clear().map(({ job }) => job));
    },
  };
}

/** How many of each tenant; of whom there is none, nothing is kept. */
function createCounts() {
  const counts = new Map<number, number>();
  let total = 0;
  return {
    of: (tenant: number) => counts.get(tenant) ?? 0,
    add(tenant: number, more: number): void {
      const count = (counts.get(tenant) ?? 0) + more;
      if (count > 0) counts.set(tenant, count);
      else counts.delete(tenant);
      total += more;
    },
    size: () => counts.size,
    total: () => total,
    clear(): void {
      counts.clear();
      total = 0;
    },
  };
}
