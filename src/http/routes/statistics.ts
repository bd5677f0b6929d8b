// /v1/statistics: how much happened, from the tallies.

import { Type } from "typebox";
import { allows } from "#domain/api-key.ts";
import { quantile } from "#domain/histogram.ts";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { PRIORITIES, priorityOf } from "#domain/priority.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { COUNTED, type Counted, GROUPS, type Group, rangeOf, STEPS } from "#domain/statistics.ts";
import { STATUSES } from "#domain/status.ts";
import { type Route, route } from "#http/core/route.ts";
import { TenantName } from "#http/core/schemas.ts";
import { readIsComplete, readStatistics, type StatisticsLine } from "#record/statistics.ts";
import { isOperator } from "#steps/manage/keys.ts";
import type { Queryable } from "#store/connection/database.ts";

const MOST_LINES = 5_000;

const WORD = `(${GROUPS.join("|")})`;
const orNone = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));
const counts = Object.fromEntries(COUNTED.map((name) => [name, Type.Integer()])) as {
  [name in Counted]: ReturnType<typeof Type.Integer>;
};

const LineBody = Type.Object({
  at: Type.Optional(Instant),
  tenant: orNone(TenantName),
  channel: orNone(oneOf(CHANNELS)),
  priority: orNone(oneOf(PRIORITIES)),
  provider: orNone(Type.String()),
  status: orNone(oneOf(STATUSES)),
  outcome: orNone(Type.String()),
  ...counts,
  success: Type.Union([Type.Number(), Type.Null()]),
  cost: Type.Number(),
  latencyMs: Type.Union([Type.Object({ p50: Type.Number(), p90: Type.Number(), p99: Type.Number() }), Type.Null()]),
});

export function statisticsRoutes({ db, now }: { db: Queryable; now: () => Date }): Route[] {
  const statistics = route({
    method: "GET",
    path: "/v1/statistics",
    summary: "How much happened, how well and how fast",
    detail:
      "Counted when it happened, to the last second or so, and as fast however much there is; what retention drops stays counted. A line for each step, and for each " +
      "of what it is grouped by, in which something happened. `since` and `until` are moved outwards to where a step begins. At most 500 steps and 5,000 lines. " +
      "Minutes are kept for 2 days, hours for 62, days for 800. To group by `tenant` is for the default tenant's administrators; everybody else sees the own tenant.",
    tag: "Queue",
    scope: "read",
    turn: "large",
    query: strict({
      since: Type.Optional(Instant),
      until: Type.Optional(Instant),
      step: Type.Optional(oneOf(STEPS)),
      by: Type.Optional(
        Type.String({ pattern: `^${WORD}(,${WORD}){0,5}$`, "x-expects": `some of ${GROUPS.join(", ")}, with commas` }),
      ),
    }),
    answers: {
      200: {
        description: "The statistics, in order of time",
        schema: Type.Object({
          since: Instant,
          until: Instant,
          step: Type.Optional(oneOf(STEPS)),
          isComplete: Type.Boolean(),
          data: Type.Array(LineBody),
        }),
      },
    },
    async handle({ query, actor }) {
      const range = rangeOf(query, now());
      if (Array.isArray(range)) throw invalid(range);
      const by = [...new Set(query.by?.split(",") as Group[] | undefined)];
      const isOfAll = by.includes("tenant");
      if (isOfAll && !(isOperator(actor) && allows(actor.scopes, "admin")))
        throw new Problem("FORBIDDEN", "to group by tenant is for the default tenant's administrators");
      const tenant = isOfAll ? undefined : actor.tenant;
      const isComplete = await readIsComplete(db);
      const lines = await readStatistics(db, { ...range, by, tenant, most: MOST_LINES + 1 });
      if (lines.length > MOST_LINES)
        throw invalid([
          {
            path: "/by",
            message: `must not make more than ${MOST_LINES} lines: group by less, or ask for fewer steps`,
          },
        ]);
      const { since, until } = range;
      const head = { since: since.toISOString(), until: until.toISOString(), ...(query.step && { step: query.step }) };
      return { status: 200, body: { ...head, isComplete, data: lines.map((line) => bodyOf(line, by)) } };
    },
  });
  return [statistics];
}

function bodyOf(line: StatisticsLine, by: readonly Group[]) {
  const { at, sent, concluded, cost, latencies } = line;
  const groups = by.map((group) => [group, group === "priority" ? priorityOf(Number(line.priority)) : line[group]]);
  const rounded = (part: number) => Math.round((quantile(latencies, part) ?? 0) * 10) / 10;
  return {
    ...(at && { at: at.toISOString() }),
    ...Object.fromEntries(groups),
    ...Object.fromEntries(COUNTED.map((name) => [name, line[name]])),
    success: concluded > 0 ? Math.round((sent / concluded) * 10_000) / 10_000 : null,
    cost: Math.round(cost * 1_000_000) / 1_000_000,
    latencyMs: latencies.some((count) => count > 0)
      ? { p50: rounded(0.5), p90: rounded(0.9), p99: rounded(0.99) }
      : null,
  };
}
