// GET /v1/events: what happened to a tenant's notifications, in order, from any position on.

import { type Static, Type } from "typebox";
import { FACT_TYPES, type FactType, type Position, readPosition, startOf, writtenPosition } from "#domain/fact.ts";
import { FactBody, factBody } from "#domain/fact-body.ts";
import { Instant, strict } from "#domain/notification.ts";
import { invalid, Problem } from "#domain/problems.ts";
import type { EventStreams, FactPage } from "#following/streams.ts";
import type { Authenticate } from "#http/core/authenticate.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id } from "#http/core/schemas.ts";
import type { RequestTurns } from "#http/core/turns.ts";
import { findDetails, readFactsOf } from "#record/facts.ts";
import { type FeedPage, type FeedReset, readEpoch, readFeed } from "#record/feed.ts";
import { findFeedEnd, findFeedSince } from "#record/feed-places.ts";
import type { Queryable } from "#store/connection/database.ts";
import { STREAM_HEADERS } from "./inbox-stream.ts";

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

const STREAM_PAGE = 100;

export type EventOptions = {
  db: Queryable;
  turns: RequestTurns;
  streams: EventStreams;
  auth: Pick<Authenticate, "isAlive">;
};

export function eventRoutes({ db, turns, streams, auth }: EventOptions): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/events",
    summary: "What happened, in order",
    detail:
      "Ask again with `after` = `next`: nothing is missed and nothing comes twice. Without `after` it begins with the oldest that is kept, " +
      "or with what happened at `since`. A page may be short or empty, and there may be more all the same: `isAtEnd` says so. " +
      "410 `RESET`: what follows the position cannot be told without a gap; the answer's `next` is the oldest that is kept. " +
      "With `Accept: text/event-stream` it waits for more: events `fact`, each with its position as `id`, and `reset`; `Last-Event-ID` resumes. " +
      "Without a position it begins now. It ends after about ten minutes: come back.",
    tag: "Events",
    scope: "read",
    // A stream is open for long; each page is read in its tenant's turn.
    turn: "none",
    query: EventsQuery,
    headers: Type.Object({ "Last-Event-ID": Type.Optional(Type.String()) }),
    answers: {
      200: {
        description: "One page, or the stream",
        schema: Type.Object({ data: Type.Array(FactBody), next: Type.String(), isAtEnd: Type.Boolean() }),
        streams: true,
      },
      410: {
        description:
          "`RESET`: what follows the position cannot be told without a gap; `next` is the oldest that is kept",
      },
      429: { description: "`TOO_MANY_STREAMS`: the tenant has as many open in this process as it may" },
    },
    async handle({ query, actor, header }) {
      const { tenant } = actor;
      const isStream = header("accept")?.includes("text/event-stream") === true;
      // What a stream holds for a reader that does not keep up is one page.
      const asked = isStream ? { ...query, limit: STREAM_PAGE } : query;
      const read = (after: Position) => turns.small(tenant, () => readPage(db, tenant, asked, after));
      const from = await turns.small(tenant, () =>
        positionOf(db, query, header("last-event-id") || undefined, isStream),
      );
      if (!isStream) {
        const { data, next, isAtEnd } = await read(from);
        return { status: 200, body: { data, next: writtenPosition(next), isAtEnd } };
      }
      // While no can still be said with a status.
      await read(from);
      const follower = streams.admit({ tenant, position: from, read, isAllowed: () => auth.isAlive(actor) });
      return { status: 200, headers: STREAM_HEADERS, stream: (out) => streams.open(follower, out) };
    },
  });
  return [list];
}

/** How far a stream came is in the header: who reconnects repeats the URL it began with. */
async function positionOf(
  db: Queryable,
  { after, since }: EventsQuery,
  lastEventId: string | undefined,
  isStream: boolean,
): Promise<Position> {
  const given = isStream ? (lastEventId ?? after) : after;
  if (given !== undefined) {
    const position = readPosition(given);
    if (position) return position;
    throw invalid([{ path: "/after", message: "must be a position of an earlier page" }]);
  }
  if (since !== undefined) {
    const found = await findFeedSince(db, new Date(since));
    return "kind" in found ? refuse(found) : found;
  }
  return isStream ? findFeedEnd(db) : startOf(await readEpoch(db));
}

async function readPage(db: Queryable, tenant: number, query: EventsQuery, after: Position): Promise<FactPage> {
  const { facts, next, isAtEnd } = await readFacts(db, tenant, query, after);
  const details = await findDetails(db, facts);
  return { data: facts.map((fact, n) => factBody(fact, details[n])), next, isAtEnd };
}

/** Whoever follows from outside may have seen what an epoch lost with its end: it is told so. */
async function readFacts(db: Queryable, tenant: number, query: EventsQuery, after: Position): Promise<FeedPage> {
  const { limit = 100, notification } = query;
  const types = query.types?.split(",") as FactType[] | undefined;
  const asked = { after, limit, tenant, ...(types && { types }) };
  // One row of the feed, whosever it is, to hear whether the position holds.
  const page = await readFeed(db, notification ? { after, limit: 1 } : asked);
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
