// What is done to a notification from outside: cancelled, given another time, sent again.

import { Type } from "typebox";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { PRIORITIES, rankOf } from "#domain/priority.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { STATUSES } from "#domain/status.ts";
import { bodyOf, orThrow, PROBLEM_JSON } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id } from "#http/core/schemas.ts";
import { type CancelWorld, cancel } from "#steps/manage/cancel.ts";
import { type RescheduleWorld, reschedule } from "#steps/manage/reschedule.ts";
import { type RetryWorld, retry } from "#steps/manage/retry.ts";

const tag = "Notifications";
const noSuch = (id: string) => new Problem("NOT_FOUND", `there is no notification ${id}`);

export const changeRoutes = (world: CancelWorld & RescheduleWorld & RetryWorld): Route[] => [
  cancelOne(world),
  rescheduleOne(world),
  retryOne(world),
];

const cancelOne = (world: CancelWorld): Route =>
  route({
    method: "POST",
    path: "/v1/notifications/:id/cancel",
    summary: "Cancel a notification that has not been taken up yet",
    tag,
    scope: "send",
    params: strict({ id: Id }),
    answers: {
      200: {
        description: "It will not be sent",
        schema: Type.Object({ notificationId: Id, cancelled: Type.Boolean() }),
      },
      409: {
        description: "Too late; `reason` says why",
        schema: Type.Object({ notificationId: Id, cancelled: Type.Boolean(), reason: Type.String() }),
      },
    },
    async handle({ params, actor }) {
      const outcome = await cancel(world, actor, params.id);
      if (outcome === "unknown") throw noSuch(params.id);
      if (outcome === "cancelled") return { status: 200, body: { notificationId: params.id, cancelled: true } };
      const reason = `the notification is ${outcome.status}`;
      const problem = bodyOf(new Problem("NOT_CANCELLABLE", reason));
      return {
        status: 409,
        body: { ...problem, notificationId: params.id, cancelled: false, reason },
        headers: { "content-type": PROBLEM_JSON },
      };
    },
  });

const rescheduleOne = (world: RescheduleWorld): Route =>
  route({
    method: "PATCH",
    path: "/v1/notifications/:id",
    summary: "Reschedule a notification that has not been taken up yet",
    detail: "What is not named stays. A time in the past sends it now; `expiresAt: null` takes its expiry away.",
    tag,
    scope: "send",
    params: strict({ id: Id }),
    body: Type.Object(
      {
        scheduledFor: Type.Optional(Instant),
        expiresAt: Type.Optional(Type.Union([Instant, Type.Null()])),
        priority: Type.Optional(oneOf(PRIORITIES)),
      },
      { additionalProperties: false, minProperties: 1 },
    ),
    answers: {
      200: {
        description: "As it is now",
        schema: Type.Object({
          notificationId: Id,
          status: oneOf(STATUSES),
          priority: oneOf(PRIORITIES),
          scheduledFor: Type.Optional(Instant),
          expiresAt: Type.Optional(Instant),
        }),
      },
      409: { description: "Too late: it is being sent, or has ended" },
    },
    async handle({ params: { id }, body: { scheduledFor, expiresAt, priority }, actor }) {
      const outcome = await reschedule(world, actor, id, {
        ...(scheduledFor !== undefined && { dueAt: scheduledFor }),
        ...(expiresAt !== undefined && { expiresAt }),
        ...(priority !== undefined && { rank: rankOf[priority] }),
      });
      switch (outcome.kind) {
        case "unknown":
          throw noSuch(id);
        case "over":
          throw new Problem("NOT_RESCHEDULABLE", `the notification is ${outcome.status}`);
        case "refused":
          throw invalid([{ path: "/expiresAt", message: outcome.reason }]);
        case "done": {
          const { status, priority, dueAt, expiresAt } = outcome;
          return {
            status: 200,
            body: {
              notificationId: id,
              status,
              priority,
              ...(dueAt && { scheduledFor: dueAt.toISOString() }),
              ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
            },
          };
        }
      }
    },
  });
const retryOne = (world: RetryWorld): Route =>
  route({
    method: "POST",
    path: "/v1/notifications/:id/retry",
    summary: "Send a notification again that failed, expired, was cancelled or is ambiguous",
    detail: "It goes back to its lane with a fresh budget of attempts.",
    tag,
    scope: "send",
    params: strict({ id: Id }),
    answers: {
      200: { description: "It is queued again", schema: Type.Object({ notificationId: Id, status: Type.String() }) },
      409: { description: "It has not ended, or has been sent" },
    },
    async handle({ params: { id }, actor }) {
      orThrow(await retry(world, actor, id));
      return { status: 200, body: { notificationId: id, status: "queued" } };
    },
  });
