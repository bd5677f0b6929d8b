// What stands still: because it is paused, or because no living worker takes it.
//
// Anybody may ask for it, through health and metrics: it is looked at every ten seconds at most. State: the last look.

import { PAUSE_KINDS, type PauseKind } from "#domain/pause.ts";
import type { WorkerTakes } from "#domain/worker-takes.ts";
import type { Queue, Untaken } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listPauses } from "#store/pauses.ts";

export type Stalls = {
  workers: number;
  untaken: readonly Untaken[];
  paused: { [kind in PauseKind]: number };
};

export type StallsOptions = {
  db: Queryable;
  queue: Pick<Queue, "untaken">;
  /** What those take who are alive. */
  workers: () => Promise<WorkerTakes[]>;
  monotonic: () => number;
};

const LOOK_MS = 10_000;

export function createStalls({ db, queue, workers, monotonic }: StallsOptions): () => Promise<Stalls> {
  let looked: { at: number; found: Promise<Stalls> } | undefined;

  async function look(): Promise<Stalls> {
    const [takes, pauses] = await Promise.all([workers(), listPauses(db)]);
    const count = (kind: PauseKind) => pauses.filter((pause) => pause.kind === kind).length;
    const paused = Object.fromEntries(PAUSE_KINDS.map((kind) => [kind, count(kind)])) as Stalls["paused"];
    return { workers: takes.length, untaken: await queue.untaken(db, takes), paused };
  }

  return () => {
    const at = monotonic();
    if (looked && at - looked.at < LOOK_MS) return looked.found;
    const found = look();
    const mine = { at, found };
    looked = mine;
    // What failed is tried again by the next who asks.
    found.catch(() => {
      if (looked === mine) looked = undefined;
    });
    return found;
  };
}
