// Renders templates in worker threads, so that a template can neither stop the process nor take it down.
//
// A thread has one job at a time. If the job takes too long or too much memory the thread is ended with it, and the next
// job gets a new one. Threads keep what they compiled; which keys a thread knows is kept here, so that a template's
// source is sent to each of them once.

import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import type { Filled, Limits } from "./compile.ts";
import type { Job, Said } from "./render-thread.ts";
import type { Rendered, Source, TemplateError, Variables } from "./template.ts";

export type RendererOptions = {
  threads?: number;
  /** From the moment a thread takes the template up, compiling it included if it is new. */
  deadlineMs?: number;
  /** Renders that may wait for a thread. */
  maxWaiting?: number;
  /** Of each thread, MJML's own 60 MB included. */
  memoryMb?: number;
};
export type Renderer = {
  /** Never throws: whatever went wrong is an error of this one render. */
  render(source: Source, variables: Variables): Promise<Rendered>;
  /** Compiles it only. Every error found; none means that it can be rendered. */
  check(source: Source): Promise<TemplateError[]>;
  close(): Promise<void>;
};

type Waiting = { source: Source; variables: Variables | undefined; done: (filled: Filled) => void };
type Thread = { isIdle(): boolean; run(waiting: Waiting): void; end(): Promise<unknown> };

const OUTPUT_BYTES = 262_144;
/** For the start of a thread, and for loading MJML: many times what an idle machine needs. */
const LOAD_MS = 15_000;
const KEPT_TEMPLATES = 500;
/** Liquid's own limit comes first: it leaves the thread alive and knows the line. */
const LIQUID_SHARE = 0.8;

export function createRenderer(options: RendererOptions = {}): Renderer {
  const { threads: maxThreads = 2, maxWaiting = 1_000, deadlineMs = 250, memoryMb = 192 } = options;
  const threads = new Set<Thread>();
  const waiting: Waiting[] = [];
  let isClosed = false;

  const pump = () => {
    while (waiting.length > 0) {
      const thread = [...threads].find((one) => one.isIdle()) ?? another();
      const next = thread && waiting.shift();
      if (!next) return;
      thread.run(next);
    }
  };
  const another = (): Thread | undefined => {
    if (isClosed || threads.size >= maxThreads) return undefined;
    const thread = startThread({
      deadlineMs,
      memoryMb,
      onIdle: pump,
      onGone: () => {
        threads.delete(thread);
        pump();
      },
    });
    threads.add(thread);
    return thread;
  };
  const ask = (source: Source, variables?: Variables) =>
    new Promise<Filled>((done) => {
      if (isClosed) return done(busy("the renderer is closed"));
      if (waiting.length >= maxWaiting) return done(busy("too many templates wait to be rendered"));
      waiting.push({ source, variables, done });
      pump();
    });

  return {
    async render(source, variables) {
      const filled = await ask(source, variables);
      return filled.ok ? filled : { ok: false, error: filled.errors[0] ?? { message: "not rendered" } };
    },
    async check(source) {
      const filled = await ask(source);
      return filled.ok ? [] : filled.errors;
    },
    async close() {
      isClosed = true;
      for (const { done } of waiting.splice(0)) done(busy("the renderer is closed"));
      await Promise.all([...threads].map((thread) => thread.end()));
    },
  };
}

const failed = (error: TemplateError): Filled => ({ ok: false, errors: [error] });
const busy = (message: string) => failed({ message, why: "busy" });

type ThreadOptions = { deadlineMs: number; memoryMb: number; onIdle: () => void; onGone: () => void };

function startThread({ deadlineMs, memoryMb, onIdle, onGone }: ThreadOptions): Thread {
  const limits: Limits = { renderMs: deadlineMs * LIQUID_SHARE, outputBytes: OUTPUT_BYTES };
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

  const known = new Map<string, true>();
  let current: Waiting | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isStarted = false;
  let hasMjml = false;
  let isEnding = false;
  let ending = busy("the thread that rendered it ended");

  const finish = (filled: Filled) => {
    clearTimeout(timer);
    const job = current;
    current = undefined;
    job?.done(filled);
  };
  const expect = (ms: number) => {
    clearTimeout(timer);
    const job = current;
    timer = setTimeout(() => {
      // If it was this process that stood still, the answer is here already and is read before the next immediate.
      setImmediate(() => {
        if (current !== job || job === undefined) return;
        isEnding = true;
        ending = failed({ message: `takes longer than ${ms} ms`, why: "slow" });
        void worker.terminate();
      });
    }, ms);
  };

  worker.on("message", (said: Said) => {
    if (isEnding) return;
    if (said !== "ready") {
      finish(said);
      onIdle();
    } else if (isStarted) hasMjml = true;
    else isStarted = true;
    if (said === "ready" && current) expect(isPrepared(current) ? deadlineMs : LOAD_MS);
  });
  worker.on("error", (error) => {
    isEnding = true;
    const isMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
    ending = isMemory ? failed({ message: `needs more than ${memoryMb} MiB of memory` }) : busy(error.message);
  });
  worker.on("exit", () => {
    finish(ending);
    onGone();
  });
  const isPrepared = ({ source }: Waiting) => isStarted && (hasMjml || source.fields.mjml === undefined);

  return {
    isIdle: () => current === undefined && !isEnding,
    run(waiting) {
      const { source, variables } = waiting;
      current = waiting;
      const key = keyOf(source);
      const isKnown = known.delete(key);
      known.set(key, true);
      const [oldest] = known.size > KEPT_TEMPLATES ? known.keys() : [];
      if (oldest !== undefined) known.delete(oldest);
      const job: Job = {
        key,
        ...(!isKnown && { source }),
        ...(oldest !== undefined && { forget: oldest }),
        ...(variables && { variables }),
      };
      expect(isPrepared(waiting) ? deadlineMs : LOAD_MS);
      try {
        worker.postMessage(job);
      } catch {
        known.delete(key);
        finish(failed({ message: "the variables hold something that is not JSON" }));
      }
    },
    end: () => worker.terminate(),
  };
}

const keys = new WeakMap<Source, string>();

/** Equal sources have equal keys; hashed once for each object. */
function keyOf(source: Source): string {
  let key = keys.get(source);
  if (key === undefined) {
    key = createHash("sha256").update(JSON.stringify(source)).digest("base64url");
    keys.set(source, key);
  }
  return key;
}
