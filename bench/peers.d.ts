// The little of the peers' interfaces that the adapters use.
//
// Declared here, so that the repository type-checks without bench/node_modules; a module declared
// this way is never looked up. Versions are pinned, and a wrong declaration fails at the first run.

declare module "pg-boss" {
  export class PgBoss {
    constructor(options: {
      connectionString: string;
      max: number;
      supervise: boolean;
      schedule: boolean;
      useListenNotify?: boolean;
    });
    work(
      name: string,
      options: {
        batchSize: number;
        localConcurrency: number;
        pollingIntervalSeconds: number;
        burstWhenBatchFull: boolean;
        minPriority?: number;
        localGroupConcurrency?: number;
      },
      handler: (jobs: { data: { at: number; takesMs?: number } }[]) => Promise<void>,
    ): Promise<string>;
    on(event: "error", listener: (error: Error) => void): this;
    start(): Promise<this>;
    stop(options: { graceful: boolean; timeout?: number }): Promise<void>;
    createQueue(name: string, options: { partition: boolean; notify: boolean }): Promise<void>;
    send(name: string, data: object, options?: { startAfter: Date }): Promise<string | null>;
    insert(
      name: string,
      jobs: { data: object; startAfter?: Date; priority?: number; group?: { id: string } }[],
    ): Promise<string[] | null>;
  }
}

declare module "graphile-worker" {
  export class Logger {
    constructor(factory: () => () => void);
  }
  export type WorkerUtils = {
    migrate(): Promise<void>;
    addJob(identifier: string, payload: object, spec?: { runAt: Date }): Promise<unknown>;
    addJobs(jobs: { identifier: string; payload: object; runAt?: Date; priority?: number }[]): Promise<unknown>;
    release(): Promise<void>;
  };
  export function run(options: {
    taskList: Record<string, (payload: { at: number; takesMs?: number }) => Promise<void>>;
    preset: {
      worker: {
        connectionString: string;
        concurrentJobs: number;
        maxPoolSize: number;
        localQueue: { size: number };
        completeJobBatchDelay: number;
        failJobBatchDelay: number;
        pollInterval?: number;
        logger: Logger;
      };
    };
    noHandleSignals: boolean;
    parsedCronItems: never[];
  }): Promise<{ stop(): Promise<void> }>;
  export function makeWorkerUtils(options: {
    connectionString: string;
    maxPoolSize: number;
    logger: Logger;
  }): Promise<WorkerUtils>;
}

declare module "bullmq" {
  import type { Redis } from "ioredis";
  export class Worker {
    constructor(
      name: string,
      handler: (job: { data: { at: number; takesMs?: number } }) => Promise<void>,
      options: { connection: Redis; concurrency: number; removeOnComplete: { count: number } },
    );
    on(event: "error", listener: (error: Error) => void): this;
    close(): Promise<void>;
  }
  export class Queue {
    constructor(name: string, options: { connection: Redis; defaultJobOptions?: { attempts: number } });
    waitUntilReady(): Promise<unknown>;
    add(name: string, data: object, opts?: { timestamp: number; delay: number }): Promise<unknown>;
    addBulk(
      jobs: { name: string; data: object; opts?: { timestamp: number; delay: number } | { priority: number } }[],
    ): Promise<unknown>;
    getJobCounts(...states: string[]): Promise<Record<string, number>>;
    obliterate(options: { force: boolean }): Promise<void>;
    close(): Promise<void>;
  }
}
