// /v1/costs: what sending cost, by estimate.

import { Type } from "typebox";
import { Instant, strict } from "#domain/notification.ts";
import { invalid } from "#domain/problems.ts";
import { spansOf } from "#domain/spans.ts";
import { Cursor, cursorOf, idOfCursor } from "#http/core/cursor.ts";
import { type Route, route } from "#http/core/route.ts";
import { type CostLine, readCosts, readCostsOfField } from "#record/costs.ts";
import type { Queryable } from "#store/connection/database.ts";

const MONTH_MS = 30 * 86_400_000;
const FIELD = "metadata.";
/** Notifications looked at for a page by a field: a few tenths of a second. */
const MAX_SCANNED = 10_000;

export function costRoutes({ db, now }: { db: Queryable; now: () => Date }): Route[] {
  const costs = route({
    method: "GET",
    path: "/v1/costs",
    summary: "What sending cost, by provider, channel or a field of the metadata",
    detail:
      "Estimates in US dollars, from list prices or the provider's settings. Without `since`, the last 30 days. By provider or channel it is as fast however much was sent, and what retention drops " +
      "stays counted: `since` and `until` are moved outwards to where a minute begins, an hour beyond 2 days ago and a day beyond 62; what is older than 800 days is left out. " +
      "By a field of the metadata 10,000 notifications are looked at, of those accepted since a day before `since`, the newest first: the sums are of those alone, `searchedUntil` says back to when, and `nextCursor` goes on.",
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
      cursor: Type.Optional(Cursor),
    }),
    answers: {
      200: {
        description: "The dearest first",
        schema: Type.Object({
          since: Instant,
          until: Instant,
          total: Type.Number(),
          data: Type.Array(Type.Object({ key: Type.String(), sent: Type.Integer(), cost: Type.Number() })),
          looked: Type.Optional(Type.Integer()),
          searchedUntil: Type.Optional(Instant),
          nextCursor: Type.Union([Type.String(), Type.Null()]),
        }),
      },
    },
    async handle({ query: { by = "provider", since, until, cursor }, actor }) {
      const end = until === undefined ? now() : new Date(until);
      const range = { since: since === undefined ? new Date(end.getTime() - MONTH_MS) : new Date(since), until: end };
      if (by === "provider" || by === "channel") {
        if (cursor !== undefined) throw invalid([{ path: "/cursor", message: "goes with a field of the metadata" }]);
        const spans = spansOf(range, now());
        const lines = await readCosts(db, actor.tenant, by, spans);
        // Nothing was sent yet after now, however far ahead of it was asked for.
        const counted = { since: spans.since, until: end >= now() ? end : spans.until };
        return { status: 200, body: { ...bodyOf(counted, lines), nextCursor: null } };
      }
      const place = {
        ...range,
        beforeId: cursor === undefined ? undefined : idOfCursor(cursor),
        maxScanned: MAX_SCANNED,
      };
      const page = await readCostsOfField(db, actor.tenant, by.slice(FIELD.length), place);
      const { lines, looked, nextId } = page;
      const searched = { looked, ...(page.until && { searchedUntil: page.until.toISOString() }) };
      const nextCursor = nextId === undefined ? null : cursorOf(nextId);
      return { status: 200, body: { ...bodyOf(range, lines), ...searched, nextCursor } };
    },
  });
  return [costs];
}

const bodyOf = ({ since, until }: { since: Date; until: Date }, lines: readonly CostLine[]) => ({
  since: since.toISOString(),
  until: until.toISOString(),
  total: rounded(lines.reduce((sum, { cost }) => sum + cost, 0)),
  data: lines.map((line) => ({ ...line, cost: rounded(line.cost) })),
});

/** A hundredth of a cent. */
const rounded = (dollars: number): number => Math.round(dollars * 10_000) / 10_000;
