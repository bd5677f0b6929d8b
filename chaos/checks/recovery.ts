// It recovers: what dead workers left is taken up in time, and everything drains once the faults are over.

import type { Check, Fault, History } from "../history.ts";
import { leasesOf } from "../leases.ts";

/** A slow machine's share: processes that start, connections that are made again. */
const SLACK_MS = 30_000;

/** For every lease in the hands of a killed worker: how long until somebody else had it. Undefined: never. */
export function recoveries(history: History): { kill: Fault; tookMs: number | undefined }[] {
  const leases = leasesOf(history);
  return history.faults
    .filter(({ kind }) => kind === "kill worker")
    .flatMap((kill) =>
      leases
        .filter(({ pid, from }) => pid === kill.pid && from.committedAt <= kill.at)
        .filter(({ end }) => (end?.at ?? Number.POSITIVE_INFINITY) > kill.at)
        .map(({ end }) => ({ kill, tookMs: end && end.at - kill.at })),
    );
}

export const drains: Check = {
  guarantee: "G17",
  promise:
    "faults gone, abandoned leases are taken up within lease + sweep (+ a new keeper), a stop is clean, all drains",
  run(history, report) {
    const { quietAt, drainedAt, drainBoundMs, waiting, settings } = history;
    if (drainedAt === undefined) {
      const rest = waiting.slice(0, 3).map(({ place, id }) => `${place} ${id}`);
      report("not drained in time", `${waiting.length} wait ${drainBoundMs} ms after the faults: ${rest.join(", ")}`);
    }
    // The dead worker may have led the keepers; its lead lasts three sweeps.
    const boundMs = settings.leaseMs + 4 * settings.sweepMs + SLACK_MS;
    for (const { kill, tookMs } of recoveries(history)) {
      const lateMs = kill.at + (tookMs ?? Number.POSITIVE_INFINITY) - Math.max(kill.at, quietAt);
      if (lateMs > boundMs) report("abandoned", `${kill.slot} pid ${kill.pid}: taken up ${lateMs} ms after the faults`);
    }
    for (const { id, token, pid, from, end } of leasesOf(history)) {
      const stop = history.faults.find((fault) => fault.kind === "stop worker" && fault.pid === pid);
      // What it lost to a fault before is not its fault, nor what ran out while it was still at it: then the machine was slow.
      if (!stop || from.beganAt < quietAt || end?.op === "delete") continue;
      const { at, until = at } = stop;
      if (until - at >= settings.drainMs || (end?.at ?? until) < until) continue;
      report("a worker that was asked to stop left work behind", `${id}, token ${token}, pid ${pid}`);
    }
    for (const { kind, slot, pid, statement } of history.faults) {
      const name = `${slot} pid ${pid} ${statement ?? ""}`;
      if (kind === "died by itself") report("a process died by itself", name);
      if (kind === "did not stop") report("a process did not stop when asked to", name);
    }
  },
};
