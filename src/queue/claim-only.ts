// A worker's claims, kept to what it was told to take.

import { PRIORITIES, rankOf } from "#domain/priority.ts";
import { takesAll, type WorkerTakes } from "#domain/worker-takes.ts";
import type { Queue } from "./queue.ts";

export function claimOnly(queue: Pick<Queue, "claim">, told: WorkerTakes): Queue["claim"] {
  if (takesAll(told)) return queue.claim;
  const { lanes = PRIORITIES, ...of } = told;
  const ours = lanes.map((lane) => rankOf[lane]);
  return async (worker, count, leaseMs, takes) => {
    const ranks = ours.filter((rank) => takes?.ranks.includes(rank) ?? true);
    return ranks.length === 0 ? [] : queue.claim(worker, count, leaseMs, { ...takes, ...of, ranks });
  };
}
