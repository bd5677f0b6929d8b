// The thread in which templates are compiled and rendered. One job at a time; it may be ended at any moment.

import { parentPort, workerData } from "node:worker_threads";
import { type Compiled, compile, examine, type Filled, fill, type Limits } from "./compile.ts";
import type { Mjml } from "./mjml.ts";
import type { Source, Variables } from "./template.ts";

export type Job = {
  key: string;
  /** Only with the first job of its key. */
  source?: Source;
  /** A key that will not be asked for again without its source. */
  forget?: string;
  /** Without them, the template is only examined. */
  variables?: Variables;
};
/** `ready` when the job in hand really begins: after the start and after MJML was loaded, which take a while. */
export type Said = "ready" | Filled;

const port = parentPort;
if (!port) throw new Error("this file runs as a worker thread");
const limits = workerData as Limits;
const say = (said: Said) => port.postMessage(said);

const compiled = new Map<string, Compiled>();
let mjml: Mjml | undefined;

/** 60 MB and half a second, so only for those who use it. */
async function loadMjml(): Promise<Mjml> {
  if (!mjml) {
    mjml = (await import("mjml")).default;
    say("ready");
  }
  return mjml;
}

async function work({ key, source, forget, variables }: Job): Promise<Filled> {
  if (forget !== undefined) compiled.delete(forget);
  if (source) compiled.set(key, await compile(source, limits, loadMjml));
  const template = compiled.get(key);
  if (!template) throw new Error("a job came without its source");
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
say("ready");
