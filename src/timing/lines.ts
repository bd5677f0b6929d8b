// Those who wait: each owner in a line of their own, and the lines go round in a circle. However much one has waiting,
// another waits for no more than one of each.
//
// Who may wait, and how many of one owner may be under way, each caller says for itself: acceptance counts rows and
// bytes (group-commit.ts), templates the jobs in hand, requests those of a tenant (the two turns.ts).

export type Lines<Job> = {
  /** At the end of the owner's line. */
  join(owner: number, job: Job): void;
  /** The next in turn of those that may; its line then stands last. Those that may not keep their places. */
  next(may: (owner: number, job: Job) => boolean): Job | undefined;
  /** One that waits no longer. */
  leave(owner: number, job: Job): void;
  /** Takes all out. */
  clear(): Job[];
  /** How many of an owner wait, and how many owners there are of whom somebody does. */
  lengthOf(owner: number): number;
  owners(): number;
};

export function createLines<Job>(): Lines<Job> {
  /** None is empty. The owner that had its turn last stands last. */
  const lines = new Map<number, Job[]>();
  return {
    join(owner, job) {
      const line = lines.get(owner);
      if (line) line.push(job);
      else lines.set(owner, [job]);
    },
    next(may) {
      for (const [owner, line] of lines) {
        const job = line[0] as Job;
        if (!may(owner, job)) continue;
        line.shift();
        lines.delete(owner);
        if (line.length > 0) lines.set(owner, line);
        return job;
      }
      return undefined;
    },
    leave(owner, job) {
      const line = lines.get(owner);
      const at = line?.indexOf(job) ?? -1;
      if (!line || at === -1) return;
      line.splice(at, 1);
      if (line.length === 0) lines.delete(owner);
    },
    clear() {
      const all = [...lines.values()].flat();
      lines.clear();
      return all;
    },
    lengthOf: (owner) => lines.get(owner)?.length ?? 0,
    owners: () => lines.size,
  };
}
