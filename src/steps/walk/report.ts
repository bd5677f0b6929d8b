// What a provider reports about messages it accepted: kept, and applied where the message is known.
//
// A provider sends a request again, for a day or so, until it is answered well. One report that cannot be stored must not keep those
// beside it out, which may be about anybody's messages: it is left out.

import type { ProviderActor } from "#domain/actor.ts";
import { bisect } from "#domain/bisect.ts";
import { type Report, storableReport } from "#domain/report.ts";
import { applyReportsOf, findTracedReports, keepReports } from "#record/reports.ts";
import { isDataError, isOutage, type Queryable } from "#store/connection/database.ts";
import type { Traces } from "#telemetry/traces/traces.ts";

/** Answers with how many could be stored. */
export async function takeReports(
  db: Queryable,
  actor: ProviderActor,
  reports: readonly Report[],
  traces?: Traces,
): Promise<number> {
  const fit = reports.map(storableReport).filter((report) => report !== undefined);
  if (fit.length === 0) return 0;
  const kept = await bisect<Report, Report | undefined>(fit, {
    act: async (some) => {
      await keepReports(db, actor, some);
      return [...some];
    },
    isOutage: (error) => isOutage(error) || !isDataError(error),
    refuse: () => undefined,
  });
  const stored = kept.filter((report) => report !== undefined);
  const traced = traces && (await findTracedReports(db, actor, stored));
  await applyReportsOf(db, actor, stored);
  if (traced) traces.reported(traced);
  return stored.length;
}
