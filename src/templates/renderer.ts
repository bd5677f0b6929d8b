// Renders templates in worker threads, so that a template can neither stop the process nor take it down.
//
// A thread has one job at a time. If the job takes too long or too much memory the thread is ended with it, and the next
// job gets a new one. Urgent ones go first, in a lane tenants take turns, and one thread is always left to the others: whatever one
// of them has written, the rest wait for no more than a job.

import { rankOf } from "#domain/priority.ts";
import type { Filled } from "./compile.ts";
import type { Rendered, Source, TemplateError, Variables } from "./template.ts";
import { busy, startThread, type Task, type Thread } from "./thread.ts";
import { createTurns } from "./turns.ts";

export type RendererOptions = {
  /** A tenant has all but one of them at most. They are started when they are needed. */
  threads?: number;
  /** From the moment a thread takes the template up, compiling it included if it is new. Time of the processor. */
  deadlineMs?: number;
  /** Renders that may wait for a thread; tenants that wait share them. */
  maxWaiting?: number;
  /** Of each thread, MJML's own 60 MB included. */
  memoryMb?: number;
};
export type Renderer = {
  /** Never throws: whatever went wrong is an error of this one render. Its rank is that of what is sent; what people ask is normal. */
  render(source: Source, variables: Variables, rank?: number): Promise<Rendered>;
  /** Compiles it only. Every error found; none means that it can be rendered. */
  check(source: Source): Promise<TemplateError[]>;
  close(): Promise<void>;
};

export function createRenderer(options: RendererOptions = {}): Renderer {
  const { threads: maxThreads = 3, maxWaiting = 1_000, deadlineMs = 250, memoryMb = 192 } = options;
  const threads = new Set<Thread>();
  const turns = createTurns<Task>({ maxWaiting, mostInHand: Math.max(1, maxThreads - 1) });
  let isClosed = false;

  const pump = () => {
    while (!isClosed) {
      const idle = [...threads].find((one) => one.isIdle());
      const next = idle || threads.size < maxThreads ? turns.next() : undefined;
      if (!next) return;
      (idle ?? another()).run(next);
    }
  };
  const another = (): Thread => {
    const thread = startThread({
      deadlineMs,
      memoryMb,
      onDone: ({ source }) => {
        turns.over(source.tenant);
        pump();
      },
      onGone: (lost) => {
        threads.delete(thread);
        // It keeps its turn, and gets a thread that nobody has used: what fails there fails by itself.
        if (lost && isClosed) lost.done(busy("the renderer is closed"));
        else if (lost) another().run(lost);
        pump();
      },
    });
    threads.add(thread);
    return thread;
  };
  const ask = (source: Source, rank: number, variables?: Variables) =>
    new Promise<Filled>((done) => {
      if (isClosed) return done(busy("the renderer is closed"));
      const isWaiting = turns.add(source.tenant, rank, { source, variables, done });
      if (!isWaiting) return done(busy("too many templates wait to be rendered"));
      pump();
    });

  return {
    async render(source, variables, rank = rankOf.normal) {
      const filled = await ask(source, rank, variables);
      return filled.ok ? filled : { ok: false, error: filled.errors[0] ?? { message: "not rendered" } };
    },
    async check(source) {
      const filled = await ask(source, rankOf.normal);
      return filled.ok ? [] : filled.errors;
    },
    async close() {
      isClosed = true;
      for (const { done } of turns.clear()) done(busy("the renderer is closed"));
      await Promise.all([...threads].map((thread) => thread.end()));
    },
  };
}
