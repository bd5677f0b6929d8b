// The thread in which weeks are archived and dropped: seen from outside in retiring.ts. It may be ended at any moment.

import { parentPort, workerData } from "node:worker_threads";
import { openDatabase } from "#store/connection/database.ts";
import { limitedTo } from "#store/connection/limited.ts";
import type { Manifest } from "./manifest.ts";
import { openArchive } from "./open.ts";
import { retireArchived } from "./retire.ts";
import type { ArchiveSettings } from "./settings.ts";
import { type Told, tell } from "./told.ts";

export type RetireWork = {
  /** Of PostgreSQL itself, or of a pooler of sessions. */
  url: string;
  /** How long a statement may take. */
  limitMs: number;
  settings: ArchiveSettings;
  days: number;
  batch: number;
};
/** A step or a failure each time that it was asked to go on, and facts in between. */
export type Said =
  | { kind: "step"; count: number; isLast: boolean }
  | { kind: "failed"; error: Told }
  | { kind: "archived"; manifest: Manifest }
  | { kind: "postponed"; part: string; error: Told };

const port = parentPort;
if (!port) throw new Error("this file runs as a worker thread");
const say = (said: Said) => port.postMessage(said);

const { url, limitMs, settings, days, batch } = workerData as RetireWork;
// A connection that breaks is told of by the statement that it breaks.
const database = openDatabase({ url, acceptConnections: 1, connections: 1, onError: () => undefined });
const facts = {
  archived: (manifest: Manifest) => say({ kind: "archived", manifest }),
  archivePostponed: (part: string, error: Error) => say({ kind: "postponed", part, error: tell(error) }),
};
const world = { db: limitedTo(database.house, limitMs), store: await openArchive(settings), facts };
const steps = retireArchived(world, days, batch);

port.on("message", () => {
  steps.next().then(
    ({ value, done }) => say({ kind: "step", count: value ?? 0, isLast: done === true }),
    (error: unknown) => say({ kind: "failed", error: tell(error) }),
  );
});
