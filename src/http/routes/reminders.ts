// /v1/reminders: notifications before an event.

import { Type } from "typebox";
import { Notice } from "#domain/notice.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { TENANT_SCOPE } from "#domain/reminder.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id, Key, pageBody, TimeZone } from "#http/core/schemas.ts";
import { forgetReminder, keepReminder, type ReminderWorld } from "#steps/manage/reminders.ts";
import { findPlan, findReminder, listReminders, type PlanLine, type StoredReminder } from "#store/reminders.ts";
import { Before, Scope } from "./reminder-scopes.ts";

const tag = "Reminders";

const ReminderRequest = strict({
  at: Instant,
  timezone: Type.Optional(TimeZone),
  before: Type.Optional(Before),
  scopes: Type.Optional(Type.Array(Scope, { maxItems: 10 })),
  notification: Notice,
});

const PlanBody = Type.Object({
  at: Instant,
  before: Type.String(),
  dueAt: Instant,
  status: oneOf(["planned", "sending", "sent", "missed", "failed"]),
  retryAt: Type.Optional(Instant),
  endedAt: Type.Optional(Instant),
  notificationIds: Type.Array(Id),
  error: Type.Optional(Type.String()),
});
const ReminderBody = Type.Interface([ReminderRequest], {
  key: Key,
  offsets: Type.Array(Type.String()),
  offsetsFrom: Type.String(),
  createdAt: Instant,
  updatedAt: Instant,
});
const ReminderWithPlan = Type.Interface([ReminderBody], { plan: Type.Array(PlanBody) });

const params = strict({ key: Key });
const noSuch = (key: string) => new Problem("NOT_FOUND", `there is no reminder ${key}`);

export const reminderRoutes = (options: ReminderWorld): Route[] => [
  list(options),
  put(options),
  read(options),
  remove(options),
];

const put = (world: ReminderWorld): Route =>
  route({
    method: "PUT",
    path: "/v1/reminders/:key",
    summary: "Remind people before an event",
    detail:
      "One send for each offset of `before`, counted back from `at`. Without `before` the nearest of `scopes` that has " +
      `offsets decides, then the scope \`${TENANT_SCOPE}\`. Putting it again re-plans: what is in the past is not sent, what ` +
      "was sent is not sent again. Texts may use `{{ at }}`, `{{ before }}` and `{{ key }}`.",
    tag,
    scope: "send",
    params,
    body: ReminderRequest,
    answers: {
      200: { description: "Changed, with its new plan", schema: ReminderWithPlan },
      201: { description: "New, with its plan", schema: ReminderWithPlan },
    },
    async handle({ params, body, actor }) {
      const { at, timezone = "UTC", before, scopes = [], notification: notice } = body;
      const given = { at: new Date(at), timezone, before: before ?? null, scopes: [...new Set(scopes)], notice };
      const { reminder, lines, isNew } = orThrow(await keepReminder(world, actor, params.key, given));
      return { status: isNew ? 201 : 200, body: bodyWithPlan(reminder, lines) };
    },
  });

const read = ({ pool }: ReminderWorld): Route =>
  route({
    method: "GET",
    path: "/v1/reminders/:key",
    summary: "Read a reminder, its plan and what was sent",
    tag,
    scope: "read",
    params,
    answers: { 200: { description: "The reminder", schema: ReminderWithPlan } },
    async handle({ params, actor }) {
      const found = await findReminder(pool, actor.tenant, params.key);
      if (!found) throw noSuch(params.key);
      return { status: 200, body: bodyWithPlan(found, await findPlan(pool, found.tenant, found.key)) };
    },
  });

const list = ({ pool }: ReminderWorld): Route =>
  route({
    method: "GET",
    path: "/v1/reminders",
    summary: "List reminders",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      scope: Type.Optional(Scope),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Key),
    }),
    answers: { 200: { description: "One page, in order of their keys", schema: pageBody(ReminderBody) } },
    async handle({ query: { scope, limit = 50, cursor = "" }, actor }) {
      const found = await listReminders(pool, actor.tenant, scope, cursor, limit + 1);
      const data = found.slice(0, limit).map(bodyOf);
      return { status: 200, body: { data, nextCursor: found.length > limit ? (data.at(-1)?.key ?? null) : null } };
    },
  });

const remove = ({ pool }: ReminderWorld): Route =>
  route({
    method: "DELETE",
    path: "/v1/reminders/:key",
    summary: "Forget a reminder and cancel what is planned",
    tag,
    scope: "send",
    params,
    answers: { 204: { description: "Nothing more is sent for it" } },
    async handle({ params, actor }) {
      if (!(await forgetReminder(pool, actor, params.key))) throw noSuch(params.key);
      return { status: 204 };
    },
  });

function bodyOf(reminder: StoredReminder) {
  const { key, at, timezone, before, scopes, notice, offsets, offsetsFrom, createdAt, updatedAt } = reminder;
  return {
    key,
    at: at.toISOString(),
    timezone,
    ...(before && { before }),
    scopes,
    notification: notice,
    offsets,
    offsetsFrom,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

const bodyWithPlan = (reminder: StoredReminder, lines: readonly PlanLine[]) => ({
  ...bodyOf(reminder),
  plan: lines.map(bodyOfLine),
});

const bodyOfLine = ({ at, before, dueAt, outcome, retryAt, endedAt, notifications, error }: PlanLine) => ({
  at: at.toISOString(),
  before,
  dueAt: dueAt.toISOString(),
  status: outcome ?? ("planned" as const),
  ...(retryAt && !outcome && { retryAt: retryAt.toISOString() }),
  ...(endedAt && { endedAt: endedAt.toISOString() }),
  notificationIds: notifications,
  ...(error !== null && { error }),
});
