// A thread that renders, seen from outside. It has one job at a time, and is ended if that takes too long.
//
// How long is counted in time of the processor, where Node can tell (from 24.6 on): on a busy machine a good template
// takes long as well. A thread that does not even get that much is ended at last by the clock on the wall.

import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import type { Filled, Limits } from "./compile.ts";
import { createKept } from "./kept.ts";
import type { Job, Said } from "./render-thread.ts";
import type { Source, TemplateError, Variables } from "./template.ts";

export type Task = { source: Source; variables: Variables | undefined; done: (filled: Filled) => void };
export type Thread = { isIdle(): boolean; run(task: Task): void; end(): Promise<unknown> };

export type ThreadOptions = {
  deadlineMs: number;
  memoryMb: number;
  /** The task was answered. */
  onDone: (task: Task) => void;
  /** With the task that was lost with the thread's memory, which others may have filled before: it deserves a new thread. */
  onGone: (lost: Task | undefined) => void;
};

const OUTPUT_BYTES = 262_144;
/** For the start of a thread, and for loading MJML: many times what an idle machine needs. */
const LOAD_MS = 60_000;
/** On the wall's clock: what a thread may take that hardly gets to the processor. */
const PATIENCE_MS = 30_000;
/** Liquid's own limit comes first: it leaves the thread alive and knows the line. */
const LIQUID_SHARE = 0.8;

export const failed = (error: TemplateError): Filled => ({ ok: false, errors: [error] });
export const busy = (message: string) => failed({ message, why: "busy" });

export function startThread({ deadlineMs, memoryMb, onDone, onGone }: ThreadOptions): Thread {
  const worker = openWorker({ renderMs: deadlineMs * LIQUID_SHARE, outputBytes: OUTPUT_BYTES }, memoryMb);
  const kept = createKept();
  let current: Task | undefined;
  let tasks = 0;
  let timer: NodeJS.Timeout | undefined;
  let isStarted = false;
  let hasMjml = false;
  let isEnding = false;
  let ending = busy("the thread that rendered it ended");
  let isOutOfMemory = false;
  /** What the thread had used of the processor when the task in hand began. */
  let usedMs: number | undefined;

  const finish = (filled: Filled) => {
    clearTimeout(timer);
    const task = current;
    current = undefined;
    if (!task) return;
    task.done(filled);
    onDone(task);
  };
  const kill = (answer: Filled) => {
    isEnding = true;
    ending = answer;
    void worker.terminate();
  };
  /** The thread has to start, or to load MJML: that is nobody's fault, however long it takes. */
  const expectReady = () => {
    clearTimeout(timer);
    timer = setTimeout(() => kill(busy("no thread was ready in time")), LOAD_MS);
  };
  const expectAnswer = (ms: number) => {
    clearTimeout(timer);
    const task = current;
    const latest = performance.now() + PATIENCE_MS;
    const look = async () => {
      if (current !== task || task === undefined || isEnding) return;
      const leftMs = usedMs === undefined || !worker.cpuUsage ? 0 : ms - ((await cpuMs(worker)) - usedMs);
      // If it was this process that stood still, the answer is here already and is read before the next immediate.
      setImmediate(() => {
        if (current !== task || isEnding) return;
        if (leftMs <= 0 || performance.now() > latest) {
          kill(failed({ message: `takes longer than ${ms} ms`, why: "slow" }));
        } else wait(Math.max(leftMs, LEAST_LOOK_MS));
      });
    };
    const wait = (waitMs: number) => {
      timer = setTimeout(look, waitMs);
    };
    wait(ms);
  };

  worker.on("message", ({ filled, usedMs: used }: Said) => {
    if (isEnding) return;
    usedMs = used;
    if (filled) finish(filled);
    else if (isStarted) hasMjml = true;
    else isStarted = true;
    if (!filled && current) expect(current);
  });
  worker.on("error", (error) => {
    isEnding = true;
    isOutOfMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
    ending = isOutOfMemory ? failed({ message: `needs more than ${memoryMb} MiB of memory` }) : busy(error.message);
  });
  worker.on("exit", () => {
    const lost = isOutOfMemory && tasks > 1 ? current : undefined;
    if (lost) current = undefined;
    finish(ending);
    onGone(lost);
  });
  const isPrepared = ({ source }: Task) => isStarted && (hasMjml || source.fields.mjml === undefined);
  const expect = (task: Task) => (isPrepared(task) ? expectAnswer(deadlineMs) : expectReady());

  return {
    isIdle: () => current === undefined && !isEnding,
    run(task) {
      const { source, variables } = task;
      current = task;
      tasks += 1;
      const { key, bytes } = nameOf(source);
      const { isKnown, isKept, forget } = kept.use(key, source.tenant, bytes);
      const job: Job = { key, isKept, forget, ...(!isKnown && { source }), ...(variables && { variables }) };
      expect(task);
      try {
        worker.postMessage(job);
      } catch {
        kept.forget(key);
        finish(failed({ message: "the variables hold something that is not JSON" }));
      }
    },
    end: () => worker.terminate(),
  };
}

function openWorker(limits: Limits, memoryMb: number): Worker {
  // In the package the files are .js.
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./render-thread.${extension}`, import.meta.url), {
    workerData: limits,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
  });
  worker.stdout.resume();
  worker.stderr.resume();
  return worker;
}

const LEAST_LOOK_MS = 10;
/** A thread that is deep in one operation cannot be asked. */
const ASK_MS = 2_000;

/** What the thread has used of the processor; infinitely much if it cannot be asked. */
async function cpuMs(worker: Worker): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const silent = new Promise<number>((resolve) => {
    timer = setTimeout(() => resolve(Number.POSITIVE_INFINITY), ASK_MS);
  });
  const asked = worker.cpuUsage().then(
    ({ user, system }) => (user + system) / 1000,
    () => Number.POSITIVE_INFINITY,
  );
  return Promise.race([asked, silent]).finally(() => clearTimeout(timer));
}

const names = new WeakMap<Source, { key: string; bytes: number }>();

/** Equal sources have equal keys; hashed once for each object. */
function nameOf(source: Source): { key: string; bytes: number } {
  let name = names.get(source);
  if (name === undefined) {
    const json = JSON.stringify(source);
    name = { key: createHash("sha256").update(json).digest("base64url"), bytes: json.length };
    names.set(source, name);
  }
  return name;
}
