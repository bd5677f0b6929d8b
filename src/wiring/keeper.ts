// The keeper, wired.

import { type Running, startKeeper } from "#roles/keeper.ts";
import { sweep } from "#steps/walk/sweep.ts";
import { requireArchive } from "#store/archiving.ts";
import { HOUSE_CONNECTIONS } from "#store/connection/database.ts";
import { limitedTo } from "#store/connection/limited.ts";
import { createArchiveFacts } from "#telemetry/archive-facts.ts";
import { createMoveFacts } from "#telemetry/move-facts.ts";
import type { Base } from "./base.ts";
import { choresOf } from "./chores.ts";
import { type Member, SILENT_MS } from "./member.ts";

export async function openKeeper(
  { config, url, database, queue, engines, hints, retry, facts, figures, log }: Base,
  { id, name }: Member,
): Promise<Running> {
  const { leaseMs, sweepMs, retentionDays, auditDays, feedDays } = config;
  const settings = config.archive;
  await requireArchive(database.own, settings !== undefined);
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
    chores: choresOf({
      queue,
      tended: engines && { engines: engines.engines, ready: hints.ready },
      sweepMs,
      silentMs: SILENT_MS,
      retentionDays,
      auditDays,
      feedDays,
      archive: settings && { url, settings, facts: createArchiveFacts(log, figures.archive) },
      onAudited: createMoveFacts(log).audited,
    }),
    places: HOUSE_CONNECTIONS,
    limitedTo: (limitMs) => limitedTo(database.house, limitMs),
    facts,
  });
}
