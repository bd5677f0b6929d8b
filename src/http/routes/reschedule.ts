// PATCH /v1/notifications/:id: another time, expiry or priority for what still waits.

import { Type } from "typebox";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { PRIORITIES, rankOf } from "#domain/priority.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { STATUSES } from "#domain/status.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id } from "#http/core/schemas.ts";
import type { Queryable } from "#store/connection/database.ts";
import { reschedule } from "#store/reschedule.ts";

export type RescheduleOptions = {
  db: Queryable;
  now: () => Date;
  wake: () => void;
  plan: (dueMs: number) => void;
};

export function rescheduleRoutes({ db, now, wake, plan }: RescheduleOptions): Route[] {
  const patch = route({
    method: "PATCH",
    path: "/v1/notifications/:id",
    summary: "Reschedule a notification that has not been taken up yet",
    detail: "What is not named stays. A time in the past sends it now; `expiresAt: null` takes its expiry away.",
    tag: "Notifications",
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
      const outcome = await reschedule(db, actor.tenant, id, {
        ...(scheduledFor !== undefined && { dueAt: scheduledFor }),
        ...(expiresAt !== undefined && { expiresAt }),
        ...(priority !== undefined && { rank: rankOf[priority] }),
      });
      switch (outcome.kind) {
        case "unknown":
          throw new Problem("NOT_FOUND", `there is no notification ${id}`);
        case "over":
          throw new Problem("NOT_RESCHEDULABLE", `the notification is ${outcome.status}`);
        case "refused":
          throw invalid([{ path: "/expiresAt", message: outcome.reason }]);
        case "done": {
          if (outcome.dueAt && outcome.dueAt > now()) plan(outcome.dueAt.getTime());
          else wake();
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
  return [patch];
}
