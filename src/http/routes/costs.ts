// /v1/costs: what sending cost, by estimate.

import { Type } from "typebox";
import { Instant, strict } from "#domain/notification.ts";
import { type Route, route } from "#http/core/route.ts";
import { readCosts } from "#record/costs.ts";
import type { Queryable } from "#store/connection/database.ts";

const MONTH_MS = 30 * 86_400_000;

export function costRoutes({ db, now }: { db: Queryable; now: () => Date }): Route[] {
  const costs = route({
    method: "GET",
    path: "/v1/costs",
    summary: "What sending cost, by provider, channel or a field of the metadata",
    detail: "Estimates in US dollars, from list prices or the provider's settings. Without `since`, the last 30 days.",
    tag: "Providers",
    scope: "read",
    turn: "large",
    query: strict({
      by: Type.Optional(
        Type.String({
          pattern: "^(provider|channel|metadata[.][^\\u0001-\\u001f]{1,128})$",
          "x-expects": "provider, channel or metadata.<key>",
        }),
      ),
      since: Type.Optional(Instant),
      until: Type.Optional(Instant),
    }),
    answers: {
      200: {
        description: "The dearest first",
        schema: Type.Object({
          since: Instant,
          until: Instant,
          total: Type.Number(),
          data: Type.Array(Type.Object({ key: Type.String(), sent: Type.Integer(), cost: Type.Number() })),
        }),
      },
    },
    async handle({ query: { by = "provider", since, until }, actor }) {
      const end = until === undefined ? now() : new Date(until);
      const start = since === undefined ? new Date(end.getTime() - MONTH_MS) : new Date(since);
      const lines = await readCosts(db, actor.tenant, { by, since: start, until: end });
      const data = lines.map((line) => ({ ...line, cost: rounded(line.cost) }));
      const total = rounded(lines.reduce((sum, { cost }) => sum + cost, 0));
      return { status: 200, body: { since: start.toISOString(), until: end.toISOString(), total, data } };
    },
  });
  return [costs];
}

/** A hundredth of a cent. */
const rounded = (dollars: number): number => Math.round(dollars * 10_000) / 10_000;
