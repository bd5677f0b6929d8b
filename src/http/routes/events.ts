// GET /v1/events: what happened to a tenant's notifications, in order, from any position on.

import { type Static, Type } from "typebox";
import { FACT_TYPES, type FactType, type Position, readPosition, startOf, writtenPosition } from "#domain/fact.ts";
import { FactBody, factBody } from "#domain/fact-body.ts";
import { Instant, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id } from "#http/core/schemas.ts";
import { findDetails, readFactsOf } from "#record/facts.ts";
import { type FeedPage, type FeedReset, readEpoch, readFeed } from "#record/feed.ts";
import { findFeedSince } from "#record/feed-places.ts";
import type { Queryable } from "#store/connection/database.ts";

const WORD = `(${FACT_TYPES.join("|").replaceAll(".", "\\.")})`;

const EventsQuery = strict({
  after: Type.Optional(
    Type.String({ pattern: "^\\d{1,9}:\\d{1,15}:\\d{1,15}:\\d{1,9}$", "x-expects": "a position of an earlier page" }),
  ),
  since: Type.Optional(Instant),
  types: Type.Optional(
    Type.String({ pattern: `^${WORD}(,${WORD})*$`, "x-expects": `some of ${FACT_TYPES.join(", ")}, with commas` }),
  ),
  notification: Type.Optional(Id),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100 })),
});
type EventsQuery = Static<typeof EventsQuery>;

export function eventRoutes({ db }: { db: Queryable }): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/events",
    summary: "What happened, in order",
    detail:
      "Ask again with `after` = `next`: nothing is missed and nothing comes twice. Without `after` it begins with the oldest that is kept, " +
      "or with what happened at `since`. A page may be short or empty, and there may be more all the same: `isAtEnd` says so. " +
      "410 `RESET`: what follows the position cannot be told without a gap; the answer's `next` is the oldest that is kept.",
    tag: "Events",
    scope: "read",
    query: EventsQuery,
    answers: {
      200: {
        description: "One page",
        schema: Type.Object({ data: Type.Array(FactBody), next: Type.String(), isAtEnd: Type.Boolean() }),
      },
    },
    async handle({ query, actor }) {
      const page = await readPage(db, actor.tenant, query, await positionOf(db, query));
      const details = await findDetails(db, page.facts);
      const data = page.facts.map((fact, n) => factBody(fact, details[n]));
      return { status: 200, body: { data, next: writtenPosition(page.next), isAtEnd: page.isAtEnd } };
    },
  });
  return [list];
}

async function positionOf(db: Queryable, { after, since }: EventsQuery): Promise<Position> {
  const given = after === undefined ? undefined : readPosition(after);
  if (given) return given;
  if (since === undefined) return startOf(await readEpoch(db));
  const found = await findFeedSince(db, new Date(since));
  return "kind" in found ? refuse(found) : found;
}

/** Whoever follows from outside may have seen what an epoch lost with its end: it is told so. */
async function readPage(db: Queryable, tenant: number, query: EventsQuery, after: Position): Promise<FeedPage> {
  const { limit = 100, notification } = query;
  const types = query.types?.split(",") as FactType[] | undefined;
  const asked = { after, limit, tenant, ...(types && { types }) };
  // One fact of the feed, to hear whether the position holds.
  const page = await readFeed(db, notification ? { ...asked, limit: 1 } : asked);
  if (page.kind === "reset") return refuse(page);
  if (page.epoch !== after.epoch) {
    return refuse({ kind: "reset", reason: "unknown", next: startOf(page.epoch), epoch: page.epoch });
  }
  return notification ? readFactsOf(db, { ...asked, notificationId: notification }) : page;
}

const REASONS: { [reason in FeedReset["reason"]]: string } = {
  forgotten: "what followed this position is no longer kept",
  unknown: "this position is not of this database's present: it was restored, or another server took over",
};

function refuse({ reason, next }: FeedReset): never {
  throw new Problem("RESET", REASONS[reason], { next: writtenPosition(next) });
}
