// The queue in PostgreSQL: one statement per verb.
//
// A claim takes rows out of ready and is itself one row, with what it holds in arrays: the lease, its token and its end are
// written once for a thousand notifications. A settlement writes the record and marks the places of what it settled; with the
// last of them the claim goes. So nothing here joins two large sets, and no plan depends on what the statistics
// happened to be. Claims are locked in order of their tokens everywhere, so verbs cannot deadlock.
//
// Only the files of this folder, and in the migrations what is called queue_…, know the tables ready, later and claims.

import type { EngineName } from "#domain/handoff.ts";
import type { Engine } from "#queue/engine.ts";
import type { Queue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { bringBack } from "./bring-back.ts";
import { createClaim } from "./claim.ts";
import { depth, figures, hasReady } from "./depth.ts";
import { depthOf } from "./depth-of.ts";
import { createSweep, extend } from "./leases.ts";
import { nextDue } from "./next-due.ts";
import { pause, resume } from "./pauses.ts";
import { notePostponed } from "./postponed.ts";
import { type Gone, letGo, settle } from "./settle.ts";
import { untaken } from "./untaken.ts";
import { cancel, cancelAll, expire, move, retry } from "./waiting.ts";

const KNOWN_MS = 1_000;

export type QueueOptions = {
  /** Notifications that were in the queue and not in the record. That should never be. */
  onGone?: (ids: readonly string[]) => void;
  /** Where ready work waits besides. */
  engines?: readonly Engine[] | undefined;
  /** How long a pause or a weight that is new may be unknown to whoever asks them. */
  knownMs?: number;
  /** How long one of them is waited for. */
  patienceMs?: number | undefined;
  /** One of them could not be asked: what is in PostgreSQL is claimed all the same. */
  onEngineFailed?: (engine: EngineName, error: unknown) => void;
};

export function createPostgresQueue(db: Queryable, monotonic: () => number, options: QueueOptions = {}): Queue {
  const { onGone = () => undefined, engines = [], knownMs = KNOWN_MS, patienceMs } = options;
  const { onEngineFailed = () => undefined } = options;
  const withoutGone = async (gone: readonly Gone[]): Promise<void> => {
    if (gone.length === 0) return;
    onGone(gone.map(({ attempt }) => attempt.id));
    await letGo(db, gone);
  };
  return {
    name: "postgres",
    claim: createClaim({ db, monotonic, letGo: withoutGone, engines, knownMs, patienceMs, onEngineFailed }),
    settle: (batch) => settle(db, batch),
    extend: (worker, leases, leaseMs) => extend(db, worker, leases, leaseMs),
    sweep: createSweep(db, monotonic, withoutGone),
    notePostponed: (worker, batch) => notePostponed(db, worker, batch),
    nextDue: () => nextDue(db),
    cancel,
    cancelAll,
    move,
    retry,
    expire,
    pause,
    resume,
    bringBack,
    depth,
    depthOf,
    figures,
    untaken,
    hasReady,
  } satisfies Queue;
}
