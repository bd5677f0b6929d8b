// Whose turn it is: tenants that wait go round in a circle, and none has all the hands there are.
//
// However much one of them asks for, another waits for no more than what is in hand.

export type Turns<Job> = {
  /** False when there is no room to wait. Of several tenants that wait, each may have its share of it even then. */
  add(tenant: number, job: Job): boolean;
  /** The next in turn. It is in hand until `over`. */
  next(): Job | undefined;
  over(tenant: number): void;
  /** Takes all that wait out. */
  clear(): Job[];
};

type Lane<Job> = { waiting: Job[]; inHand: number };

export function createTurns<Job>({ maxWaiting, mostInHand }: { maxWaiting: number; mostInHand: number }): Turns<Job> {
  /** In the order of their turns. */
  const lanes = new Map<number, Lane<Job>>();
  const laneOf = (tenant: number): Lane<Job> => {
    const lane = lanes.get(tenant) ?? { waiting: [], inHand: 0 };
    lanes.set(tenant, lane);
    return lane;
  };

  return {
    add(tenant, job) {
      const lane = laneOf(tenant);
      const others = [...lanes.values()].filter((one) => one !== lane && one.waiting.length > 0);
      const all = others.reduce((sum, { waiting }) => sum + waiting.length, lane.waiting.length);
      if (all >= maxWaiting && lane.waiting.length >= maxWaiting / (others.length + 1)) return false;
      lane.waiting.push(job);
      return true;
    },
    next() {
      for (const [tenant, lane] of lanes) {
        if (lane.waiting.length === 0 || lane.inHand >= mostInHand) continue;
        lanes.delete(tenant);
        lanes.set(tenant, lane);
        lane.inHand += 1;
        return lane.waiting.shift();
      }
      return undefined;
    },
    over(tenant) {
      const lane = laneOf(tenant);
      lane.inHand -= 1;
      if (lane.inHand === 0 && lane.waiting.length === 0) lanes.delete(tenant);
    },
    clear: () => [...lanes.values()].flatMap(({ waiting }) => waiting.splice(0)),
  };
}
