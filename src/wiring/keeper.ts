// The keeper, wired.

import { type Running, startKeeper } from "#roles/keeper.ts";
import { sweep } from "#steps/walk/sweep.ts";
import { HOUSE_CONNECTIONS } from "#store/connection/database.ts";
import { limitedTo } from "#store/connection/limited.ts";
import type { Base } from "./base.ts";
import { choresOf } from "./chores.ts";
import { type Member, SILENT_MS } from "./member.ts";

export function openKeeper({ config, database, queue, retry, facts }: Base, { id, name }: Member): Running {
  const { leaseMs, sweepMs, retentionDays, auditDays, feedDays } = config;
  return startKeeper({
    db: database.own,
    holder: name,
    sweep: (count) =>
      sweep({
        db: database.own,
        queue,
        worker: id,
        count,
        leaseMs,
        retry,
        random: Math.random,
        facts,
      }),
    sweepMs,
    chores: choresOf({ queue, sweepMs, silentMs: SILENT_MS, retentionDays, auditDays, feedDays }),
    places: HOUSE_CONNECTIONS,
    limitedTo: (limitMs) => limitedTo(database.house, limitMs),
    facts,
  });
}
