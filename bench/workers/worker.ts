// What the benchmark asks of everybody's worker: run, tell of each job as its handler begins, and stop.

export type WorkerUrls = { databaseUrl: string; redisUrl: string | undefined };

/** What a worker is to be good at. Each file says what that means for it, and why. */
export const WORKER_SETTINGS = ["throughput", "latency", "punctuality", "burst", "guarded", "limited"] as const;
export type WorkerSettings = (typeof WORKER_SETTINGS)[number];

export type StartWorker = (
  urls: WorkerUrls,
  settings: WorkerSettings,
  onJob: (at: number) => void,
) => Promise<{ stop(): Promise<unknown> }>;
