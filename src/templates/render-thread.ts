// The thread in which templates are compiled and rendered. One job at a time; it may be ended at any moment.

import { parentPort, workerData } from "node:worker_threads";
import { type Compiled, compile, cpuMs, examine, type Filled, fill, type Limits } from "./compile.ts";
import type { Mjml } from "./mjml.ts";
import type { Source, Variables } from "./template.ts";

export type Job = {
  key: string;
  /** Only when its key is not kept here. */
  source?: Source;
  /** Whether it will be asked for again without its source. */
  isKept: boolean;
  /** Keys that will not. */
  forget: string[];
  /** Without them, the template is only examined. */
  variables?: Variables;
};
/**
 * Without an answer when the job in hand really begins: after the start and after MJML was loaded, which take a while.
 * Always what the thread has used of the processor, if it knows.
 */
export type Said = { filled?: Filled; usedMs: number | undefined };

const port = parentPort;
if (!port) throw new Error("this file runs as a worker thread");
const limits = workerData as Limits;
const say = (filled?: Filled) => port.postMessage({ ...(filled && { filled }), usedMs: cpuMs?.() } satisfies Said);

const compiled = new Map<string, Compiled>();
let mjml: Mjml | undefined;

/** 60 MB and half a second, so only for those who use it. */
async function loadMjml(): Promise<Mjml> {
  if (!mjml) {
    mjml = (await import("mjml")).default;
    say();
  }
  return mjml;
}

async function work({ key, source, isKept, forget, variables }: Job): Promise<Filled> {
  for (const gone of forget) compiled.delete(gone);
  const template = source ? await compile(source, limits, loadMjml) : compiled.get(key);
  if (!template) throw new Error("a job came without its source");
  if (isKept) compiled.set(key, template);
  if (!template.ok) return template;
  return variables ? fill(template, variables, limits) : examine(template);
}

port.on("message", (job: Job) => {
  work(job).then(say, (error: unknown) => {
    // Thrown out of the promise, it ends the thread, and the renderer tells.
    setImmediate(() => {
      throw error;
    });
  });
});
say();
