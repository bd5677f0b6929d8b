// /v1/dead-letters: what failed for good, and sending it again.

import { Type } from "typebox";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { PRIORITIES, rankOf } from "#domain/priority.ts";
import { invalid } from "#domain/problems.ts";
import { Cursor, cursorOf, idOfCursor } from "#http/core/cursor.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id, RequeuedBody, strictOneOf } from "#http/core/schemas.ts";
import { type Group, readDeadLetterGroups } from "#record/dead-letter-groups.ts";
import { type DeadLetter, type DeadLetterFilter, listDeadLetters } from "#record/dead-letters.ts";
import { countRequeued, MAX_REQUEUE, type RequeueWorld, requeue, type Which } from "#steps/manage/requeue.ts";

const tag = "Dead letters";
const Words = Type.String({ minLength: 1, maxLength: 200 });
export const DeadLetterFilters = {
  channel: Type.Optional(oneOf(CHANNELS)),
  priority: Type.Optional(oneOf(PRIORITIES)),
  provider: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  userId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  templateId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  outcome: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  error: Type.Optional({ ...Words, description: "Part of the error, in whatever case" }),
  cause: Type.Optional({ ...Words, description: "As `GET /v1/dead-letters/groups` names it" }),
  since: Type.Optional(Instant),
  until: Type.Optional(Instant),
};
const NextCursor = Type.Union([Type.String(), Type.Null()]);
/** Dead letters looked at for a page with a rare filter. */
const MAX_SCANNED = 2_000;
/** Looked at for groups. */
const MAX_GROUPED = 10_000;

const DeadLetterBody = Type.Object({
  notificationId: Id,
  channel: oneOf(CHANNELS),
  priority: oneOf(PRIORITIES),
  enqueuedAt: Instant,
  failedAt: Instant,
  attempts: Type.Integer(),
  provider: Type.Optional(Type.String()),
  outcome: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
});

const GroupBody = Type.Object({
  cause: Type.Optional(Type.String()),
  provider: Type.Optional(Type.String()),
  outcome: Type.Optional(Type.String()),
  channel: oneOf(CHANNELS),
  count: Type.Integer(),
  newestAt: Instant,
  oldestAt: Instant,
  examples: Type.Array(Id, { description: "The newest three" }),
});

type DeadLetterOptions = Omit<RequeueWorld, "pool"> & { large: RequeueWorld["pool"] };

export const deadLetterRoutes = (options: DeadLetterOptions): Route[] => [
  list(options),
  groups(options),
  requeueSome(options),
];

const list = ({ large }: DeadLetterOptions): Route =>
  route({
    method: "GET",
    path: "/v1/dead-letters",
    summary: "Notifications that failed for good, with their final error",
    detail: "A page may be short, of large requests or with a rare filter: go on while there is a `nextCursor`.",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      ...DeadLetterFilters,
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: {
      200: {
        description: "One page, the newest notifications first",
        schema: Type.Object({ data: Type.Array(DeadLetterBody), nextCursor: NextCursor }),
      },
    },
    async handle({ query, actor }) {
      const { limit = 50, cursor, ...given } = query;
      const place = { beforeId: beforeIdOf(cursor), limit, maxScanned: MAX_SCANNED };
      const { letters, nextId } = await listDeadLetters(large, actor.tenant, filterOf(given), place);
      return { status: 200, body: { data: letters.map(bodyOfLetter), nextCursor: nextCursorOf(nextId) } };
    },
  });

const groups = ({ large }: DeadLetterOptions): Route =>
  route({
    method: "GET",
    path: "/v1/dead-letters/groups",
    summary: "Dead letters by cause",
    detail:
      "The cause is the error without what tells one message from another: addresses, ids and numbers are `#`. It can be given as the `cause` of a list or a plan. " +
      "10,000 failures are looked at, the newest; where there are more, the counts are of those alone, `searchedUntil` says back to when, and `nextCursor` goes on.",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      ...DeadLetterFilters,
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: {
      200: {
        description: "The largest first",
        schema: Type.Object({
          data: Type.Array(GroupBody),
          total: Type.Integer({ description: "Dead letters that were found, of all groups" }),
          looked: Type.Integer(),
          searchedUntil: Type.Optional(Instant),
          nextCursor: NextCursor,
        }),
      },
    },
    async handle({ query, actor }) {
      const { limit = 50, cursor, ...given } = query;
      const place = { beforeId: beforeIdOf(cursor), limit, maxScanned: MAX_GROUPED };
      const grouped = await readDeadLetterGroups(large, actor.tenant, filterOf(given), place);
      const { found, looked, nextId, until } = grouped;
      const searched = { looked, ...(until && { searchedUntil: until.toISOString() }) };
      const data = grouped.groups.map(bodyOfGroup);
      return { status: 200, body: { data, total: found, ...searched, nextCursor: nextCursorOf(nextId) } };
    },
  });

const requeueSome = ({ large, ...world }: DeadLetterOptions): Route =>
  route({
    method: "POST",
    path: "/v1/dead-letters/requeue",
    summary: "Send dead letters again, by ids or by filter",
    detail:
      "At most `limit` go at once, the newest first: go on with `nextCursor` as the `cursor` until it is null. `remaining` counts what is " +
      "still to go, looking no further than 10,000 dead letters ahead. With `dryRun` nothing is sent: `matched` says how many of those " +
      "10,000 would be, and `nextCursor` where to go on counting.",
    tag,
    scope: "send",
    turn: "large",
    body: strictOneOf(["ids", "filter"], {
      ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: 1000 })),
      filter: Type.Optional(strict(DeadLetterFilters)),
      dryRun: Type.Optional(Type.Boolean()),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_REQUEUE, default: 1000 })),
      cursor: Type.Optional(Cursor),
    }),
    answers: {
      200: {
        description: "What was done",
        schema: RequeuedBody,
      },
    },
    async handle({ body, actor }) {
      const { ids, filter, dryRun = false, limit = 1000, cursor } = body;
      if (ids && cursor !== undefined) throw invalid([{ path: "/cursor", message: "goes with a filter" }]);
      const kind = "retry" as const;
      const which: Which = ids
        ? { kind, ids }
        : { kind, filter: filterOf(filter ?? {}), beforeId: beforeIdOf(cursor), limit };
      const { nextId, ...done } = dryRun
        ? await countRequeued(large, actor, which)
        : await requeue({ ...world, pool: large }, actor, which);
      return { status: 200, body: { ...done, nextCursor: nextCursorOf(nextId), dryRun } };
    },
  });

const beforeIdOf = (cursor: string | undefined) => (cursor === undefined ? undefined : idOfCursor(cursor));
const nextCursorOf = (id: string | undefined) => (id === undefined ? null : cursorOf(id));

export function filterOf({
  priority,
  ...rest
}: { priority?: keyof typeof rankOf } & Omit<DeadLetterFilter, "rank">): DeadLetterFilter {
  return { ...rest, ...(priority && { rank: rankOf[priority] }) };
}

const bodyOfGroup = ({ cause, provider, outcome, channel, count, newestAt, oldestAt, ids }: Group) => ({
  ...(cause !== null && { cause }),
  ...(provider !== null && { provider }),
  ...(outcome !== null && { outcome }),
  channel,
  count,
  newestAt: newestAt.toISOString(),
  oldestAt: oldestAt.toISOString(),
  examples: ids,
});

const bodyOfLetter = ({
  id,
  acceptedAt,
  failedAt,
  channel,
  priority,
  attempts,
  provider,
  outcome,
  error,
  request,
}: DeadLetter) => ({
  notificationId: id,
  channel,
  priority,
  enqueuedAt: acceptedAt.toISOString(),
  failedAt: failedAt.toISOString(),
  attempts,
  ...(provider !== null && { provider }),
  ...(outcome !== null && { outcome }),
  ...(error !== null && { error }),
  recipient: request.recipient ?? {},
  metadata: request.metadata ?? {},
});
