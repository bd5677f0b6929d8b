// What the benchmark asks of everybody's worker: run, tell of each job as its handler begins, and stop.

export type WorkerUrls = { databaseUrl: string; redisUrl: string | undefined };

/** `settings` is one of the worker's own variants; each file says what they are and why. */
export type StartWorker = (
  urls: WorkerUrls,
  settings: "throughput" | "latency",
  onJob: (at: number) => void,
) => Promise<{ stop(): Promise<unknown> }>;
