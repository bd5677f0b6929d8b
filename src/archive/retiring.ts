// Weeks are archived in a thread of their own. Many times what may be in memory comes through while a week is written, and nearly all of it
// is garbage at once. In the heap that everything else lives in it piles up before it is collected, by 130 MB; in a small heap of its own it cannot.
//
// There is a thread for each round of the chore, which goes a step each time it is asked. It is ended when the round is over, has failed or is left; if
// it dies, the round has failed, and the next one goes on where it was.

import { on } from "node:events";
import { Worker } from "node:worker_threads";
import type { Steps } from "#store/housekeeping.ts";
import type { ArchiveFacts } from "./retire.ts";
import type { RetireWork, Said } from "./retire-thread.ts";
import { hear } from "./told.ts";

export async function* retireInThread(work: RetireWork, facts: ArchiveFacts): Steps {
  const worker = openWorker(work);
  // Its errors come out of what is heard; without a listener, one that nobody hears any more would end the process.
  worker.on("error", () => undefined);
  const heard = on(worker, "message", { close: ["exit"] }) as AsyncIterable<[Said]>;
  const goOn = () => worker.postMessage("go on");
  try {
    goOn();
    for await (const [said] of heard) {
      if (said.kind === "archived") facts.archived(said.manifest);
      else if (said.kind === "postponed") facts.archivePostponed(said.part, hear(said.error));
      else if (said.kind === "failed") throw hear(said.error);
      else if (said.isLast) return;
      else {
        yield said.count;
        goOn();
      }
    }
    throw new Error("the thread that archives has ended");
  } finally {
    await worker.terminate();
  }
}

/** What is garbage is found each time that this much was made. */
const YOUNG_MB = 4;
/** Many times what a page takes, also one whose last line is by far the longest; four times as much, and requests of 256 KiB take 50 MB more. */
const OLD_MB = 64;

function openWorker(work: RetireWork): Worker {
  // In the package the files are .js.
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return new Worker(new URL(`./retire-thread.${extension}`, import.meta.url), {
    workerData: work,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB, maxOldGenerationSizeMb: OLD_MB },
    // What the process was told to load at its start, such as an SDK for traces, is of no use here.
    execArgv: [],
  });
}
