// /v1/users/:userId: forgetting a person, and all that is known of one.

import { Type } from "typebox";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { pageBody, UserId } from "#http/core/schemas.ts";
import { deleteUser, exportUser, type UserWorld } from "#steps/manage/users.ts";
import { type Deletion, findDeletion } from "#store/deletions.ts";

const tag = "Users";
const params = strict({ userId: UserId });
const DeletionBody = Type.Object({
  userId: UserId,
  state: oneOf(["running", "done"]),
  requestedAt: Instant,
  finishedAt: Type.Optional(Instant),
  notifications: Type.Integer({ description: "How many were blanked so far" }),
});

export const userRoutes = (world: UserWorld & { large: UserWorld["pool"] }): Route[] => [
  remove(world),
  deletion(world),
  all(world),
];

const remove = (world: UserWorld): Route =>
  route({
    method: "DELETE",
    path: "/v1/users/:userId",
    summary: "Forget a person",
    detail:
      "What waits for them is cancelled; what identifies them is removed or blanked wherever it is kept, in the background. What is accepted for the same user id " +
      "afterwards is new, and stays. Asking again while it is under way changes nothing.",
    tag,
    scope: "admin",
    params,
    answers: { 202: { description: "It is under way", schema: DeletionBody } },
    handle: async ({ params: { userId }, actor }) => ({
      status: 202,
      body: bodyOf(userId, await deleteUser(world, actor, userId)),
      headers: { location: `/v1/users/${encodeURIComponent(userId)}/deletion` },
    }),
  });

const deletion = ({ pool }: UserWorld): Route =>
  route({
    method: "GET",
    path: "/v1/users/:userId/deletion",
    summary: "How far the deletion of a person has come",
    tag,
    scope: "admin",
    params,
    answers: { 200: { description: "The last that was asked for", schema: DeletionBody } },
    async handle({ params: { userId }, actor }) {
      const found = await findDeletion(pool, actor.tenant, userId);
      if (!found) throw new Problem("NOT_FOUND", "nobody has asked for that");
      return { status: 200, body: bodyOf(userId, found) };
    },
  });

const all = ({ large }: { large: UserWorld["pool"] }): Route =>
  route({
    method: "GET",
    path: "/v1/users/:userId/export",
    summary: "All that is known of a person",
    detail:
      "Notifications with their histories, suppressions and kept messages of the provider dev; items of the inbox, devices, schedules and reminders that name them. " +
      "A page may be short or empty: go on while there is a `nextCursor`.",
    tag,
    scope: "admin",
    turn: "large",
    params,
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
      cursor: Type.Optional(Type.String({ pattern: "^[A-Za-z0-9_-]{1,6000}$" })),
    }),
    answers: {
      200: {
        description: "One page",
        schema: pageBody(Type.Object({ kind: Type.String() }, { additionalProperties: true })),
      },
    },
    async handle({ params: { userId }, query: { limit = 20, cursor }, actor }) {
      const { data, next } = orThrow(await exportUser({ pool: large }, actor, userId, { cursor, limit }));
      return { status: 200, body: { data, nextCursor: next ?? null } };
    },
  });

const bodyOf = (userId: string, { phase, requestedAt, finishedAt, blanked }: Deletion) => ({
  userId,
  state: phase === "done" ? "done" : "running",
  requestedAt: requestedAt.toISOString(),
  ...(finishedAt && { finishedAt: finishedAt.toISOString() }),
  notifications: blanked,
});
