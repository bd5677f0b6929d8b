// The keeper, wired.

import { type Running, startKeeper } from "#roles/keeper.ts";
import { sweep } from "#steps/walk/sweep.ts";
import type { Base } from "./base.ts";
import { type Member, SILENT_MS } from "./member.ts";

export function openKeeper({ config, database, queue, retry, facts, log }: Base, { id, name }: Member): Running {
  const { leaseMs, sweepMs, retentionDays } = config;
  return startKeeper({
    db: database.own,
    holder: name,
    sweep: (count) =>
      sweep({
        queue,
        worker: id,
        count,
        leaseMs,
        retry,
        random: Math.random,
        onRefused: (settled, error) => facts.refused(settled, error),
      }),
    sweepMs,
    silentMs: SILENT_MS,
    retentionDays,
    onSwept: (leases) => facts.swept(leases),
    log,
  });
}
