// /v1/inbox/:userId: what a user was told, for the user's own browser and for the application behind it.

import { Type } from "typebox";
import type { Caller } from "#domain/actor.ts";
import { bodyOfItem, type Inbox, ORIGIN, written } from "#domain/inbox.ts";
import { Instant, strict } from "#domain/notification.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id, UserId } from "#http/core/schemas.ts";
import type { Acknowledge } from "#steps/manage/acknowledge.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listItems, readStanding } from "#store/inbox.ts";

export const inboxTag = "Inbox";
export const OfUser = strict({ userId: UserId });
const Category = Type.String({ minLength: 1, maxLength: 128 });
const nullable = (type: Parameters<typeof Type.Union>[0][number]) => Type.Union([type, Type.Null()]);

export const ItemBody = Type.Object({
  id: Id,
  category: nullable(Type.String()),
  title: nullable(Type.String()),
  body: nullable(Type.String()),
  data: nullable(Type.Record(Type.String(), Type.Unknown())),
  link: nullable(Type.String()),
  createdAt: Instant,
  readAt: nullable(Instant),
  archivedAt: nullable(Instant),
});
const MarkedBody = Type.Object({ marked: Type.Integer(), unread: Type.Integer() });
const TrueOrFalse = Type.Enum(["true", "false"]);

export type InboxOptions = { db: Queryable; acknowledge: Acknowledge };

export const inboxAsked = ({ tenant }: Caller, { userId }: { userId: string }): Inbox => ({ tenant, userId });

const common = { tag: inboxTag, params: OfUser, isForSubscribers: true };

export function inboxRoutes(options: InboxOptions): Route[] {
  return [
    list(options),
    unread(options),
    marking(options, "ack", "Say that items have arrived: their notifications are delivered"),
    marking(options, "read", "Mark items as read"),
    marking(options, "archive", "Put items away"),
    readAll(options),
  ];
}

const unreadOf = async (db: Queryable, inbox: Inbox) => (await readStanding(db, inbox))?.unread ?? 0;

const list = ({ db }: InboxOptions): Route =>
  route({
    ...common,
    method: "GET",
    path: "/v1/inbox/:userId",
    summary: "The items of a user's inbox, the newest first",
    detail:
      "Archived items are listed with `archived=true` only. `position` is where the inbox stood: a stream that is opened with " +
      "`?after=` it misses nothing that came after the list.",
    scope: "read",
    query: strict({
      category: Type.Optional(Category),
      unread: Type.Optional(TrueOrFalse),
      archived: Type.Optional(TrueOrFalse),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Type.String({ pattern: "^[0-9]{1,15}$", "x-expects": "a nextCursor of an earlier page" })),
    }),
    answers: {
      200: {
        description: "One page",
        schema: Type.Object({
          data: Type.Array(ItemBody),
          unread: Type.Integer(),
          position: Type.String(),
          nextCursor: nullable(Type.String()),
        }),
      },
    },
    async handle({ params, query: { category, unread, archived, limit = 50, cursor }, actor }) {
      const inbox = inboxAsked(actor, params);
      // The position first: what comes between the two is then in the list and in the stream, and in neither missing.
      const standing = await readStanding(db, inbox);
      const filter = { ...(category && { category }), isUnread: unread === "true", isArchived: archived === "true" };
      const found = await listItems(db, inbox, filter, cursor === undefined ? undefined : Number(cursor), limit + 1);
      const items = found.slice(0, limit);
      return {
        status: 200,
        body: {
          data: items.map(bodyOfItem),
          unread: standing?.unread ?? 0,
          position: written(standing ?? ORIGIN),
          nextCursor: found.length > limit ? String(items.at(-1)?.seq ?? 0) : null,
        },
      };
    },
  });

const unread = ({ db }: InboxOptions): Route =>
  route({
    ...common,
    method: "GET",
    path: "/v1/inbox/:userId/unread",
    summary: "How many items of an inbox are unread",
    scope: "read",
    answers: { 200: { description: "The count", schema: Type.Object({ unread: Type.Integer() }) } },
    handle: async ({ params, actor }) => ({
      status: 200,
      body: { unread: await unreadOf(db, inboxAsked(actor, params)) },
    }),
  });

const marking = ({ db, acknowledge }: InboxOptions, verb: "ack" | "read" | "archive", summary: string): Route =>
  route({
    ...common,
    method: "POST",
    path: `/v1/inbox/:userId/${verb}`,
    summary,
    scope: "send",
    body: strict({ ids: Type.Array(Id, { minItems: 1, maxItems: 1000 }) }),
    answers: { 200: { description: "How many it changed, and how many are unread now", schema: MarkedBody } },
    async handle({ params, body: { ids }, actor }) {
      const marked = await acknowledge(actor, params.userId, { verb, ids });
      return { status: 200, body: { marked, unread: await unreadOf(db, inboxAsked(actor, params)) } };
    },
  });

const readAll = ({ db, acknowledge }: InboxOptions): Route =>
  route({
    ...common,
    method: "POST",
    path: "/v1/inbox/:userId/read-all",
    summary: "Mark everything in an inbox as read, or everything of a category",
    scope: "send",
    turn: "large",
    body: strict({ category: Type.Optional(Category) }),
    isBodyOptional: true,
    answers: { 200: { description: "How many it changed, and how many are unread now", schema: MarkedBody } },
    async handle({ params, body, actor }) {
      const marked = await acknowledge(actor, params.userId, { verb: "read-all", ...body });
      return { status: 200, body: { marked, unread: await unreadOf(db, inboxAsked(actor, params)) } };
    },
  });
