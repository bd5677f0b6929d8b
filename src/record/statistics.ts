// Reads the tallies: how much happened in a range of time.

import type { Counted, Group, Range } from "#domain/statistics.ts";
import type { Queryable } from "#store/connection/database.ts";
import { LAST_ID, places, readBase } from "./tallies.ts";

const COUNTS: { [counted in Counted | "concluded"]: string } = {
  accepted: "event = 'accepted'",
  attempts: "event = 'attempt'",
  sent: "becomes = 'sent'",
  delivered: "becomes = 'delivered'",
  failed: "becomes = 'failed'",
  expired: "becomes = 'expired'",
  suppressed: "becomes = 'suppressed'",
  ambiguous: "becomes = 'ambiguous'",
  cancelled: "becomes = 'cancelled'",
  retrying: "event = 'attempt' and becomes = 'pending'",
  postponed: "event = 'postponed'",
  retried: "event = 'retried'",
  /** Attempts after which it was known, or nobody will ever know. */
  concluded: "event = 'attempt' and becomes in ('sent', 'failed', 'ambiguous')",
};

const GROUPED: { [group in Group]: string } = {
  tenant: "(select n.name from carillon.tenants n where n.id = t.tenant)",
  channel: "t.channel",
  priority: "t.lane",
  provider: "nullif(t.provider, '')",
  status: "nullif(t.becomes, '')",
  outcome: "nullif(t.outcome, '')",
};

export type StatisticsLine = { [counted in keyof typeof COUNTS]: number } & {
  [group in Group]?: string | number | null;
} & {
  at: Date | null;
  cost: number;
  latencies: number[];
};

export type StatisticsAsked = Range & {
  by: readonly Group[];
  /** Undefined: of all. */
  tenant: number | undefined;
  most: number;
};

/** A line for each step and group in which something happened. */
export async function readStatistics(db: Queryable, asked: StatisticsAsked): Promise<StatisticsLine[]> {
  const { grain, since, until, stepMs, by, tenant, most } = asked;
  const keys = by.map((group) => `${GROUPED[group]} as "${group}"`);
  const counts = Object.entries(COUNTS).map(
    ([name, which]) => `coalesce(sum(count) filter (where ${which}), 0)::float8 as ${name}`,
  );
  const grouped = [...by.keys()].map((n) => n + 2);
  const { rows } = await db.query<StatisticsLine>(
    `select ${["to_timestamp(floor(date_part('epoch', t.at) / $4::float8) * $4) as at", ...keys, ...counts].join(", ")}, sum(cost)::float8 as cost,
       ${places((place) => `coalesce(sum(latencies[${place}]), 0)`)}::float8[] as latencies
     from carillon.tallies t
     where ($3::integer is null or t.tenant = $3) and t.grain = $5 and t.at >= $1 and t.at < $2
     group by ${[1, ...grouped].join(", ")} order by ${[1, ...grouped].join(", ")} limit ${most}`,
    [since, until, tenant ?? null, stepMs === undefined ? null : stepMs / 1000, grain],
  );
  return rows;
}

/** Whether all is counted that was there before somebody counted. */
export const readIsComplete = async (db: Queryable): Promise<boolean> => (await readBase(db)).id === LAST_ID;
