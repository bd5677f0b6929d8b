// What the benchmark asks of everybody's worker: run, tell of each job as its handler begins, and stop.

import { setTimeout as sleep } from "node:timers/promises";

export type WorkerJob = { at: number; takesMs?: number };
export type WorkerUrls = { databaseUrl: string; redisUrl: string | undefined };

/** What a worker is to be good at. Each file says what that means for it, and why. */
export const WORKER_SETTINGS = [
  "throughput",
  "latency",
  "punctuality",
  "burst",
  "guarded",
  "limited",
  "isolation",
  "receivers",
  "callbacks",
] as const;
export type WorkerSettings = (typeof WORKER_SETTINGS)[number];

/** What peers may have under way at once where walls are measured: as many as ours in all, 200 for a tenant and 92 that are kept for others. */
export const SLOTS = 292;

/** Begins a job, and takes as long as it says. */
export async function worked({ at, takesMs = 0 }: WorkerJob, onJob: (at: number) => void): Promise<void> {
  onJob(at);
  if (takesMs > 0) await sleep(takesMs);
}

export type StartWorker = (
  urls: WorkerUrls,
  settings: WorkerSettings,
  onJob: (at: number) => void,
) => Promise<{ stop(): Promise<unknown> }>;
