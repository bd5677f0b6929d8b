// /v1/reminders: notifications before an event.

import type pg from "pg";
import { type Static, Type } from "typebox";
import { faultsOfNotice, Notice } from "#domain/notice.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { type Fault, invalid, Problem } from "#domain/problems.ts";
import { TENANT_SCOPE } from "#domain/reminder.ts";
import { isTimeZone } from "#domain/time-zone.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id, Key, pageBody, TimeZone } from "#http/core/schemas.ts";
import { keepReminder } from "#steps/planned/remind.ts";
import {
  deleteReminder,
  findPlan,
  findReminder,
  listReminders,
  type PlanLine,
  type StoredReminder,
} from "#store/reminders.ts";
import type { NoticeTexts } from "#templates/inline.ts";
import { Before, faultsOfOffsets, Scope } from "./reminder-scopes.ts";

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
export type ReminderOptions = {
  pool: pg.Pool;
  noticeTexts: NoticeTexts;
  now: () => Date;
  plan: (dueMs: number) => void;
};

export function reminderRoutes({ pool, noticeTexts, now, plan }: ReminderOptions): Route[] {
  const params = strict({ key: Key });
  const noSuch = (key: string) => new Problem("NOT_FOUND", `there is no reminder ${key}`);
  const withPlan = async (reminder: StoredReminder) => ({
    ...bodyOf(reminder),
    plan: (await findPlan(pool, reminder.tenant, reminder.key)).map(bodyOfLine),
  });
  const detail = Type.Interface([ReminderBody], { plan: Type.Array(PlanBody) });

  const put = route({
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
      200: { description: "Changed, with its new plan", schema: detail },
      201: { description: "New, with its plan", schema: detail },
    },
    async handle({ params, body, actor }) {
      const faults = faultsOfReminder(body, now());
      if (faults.length > 0) throw invalid(faults);
      const unfilled = await noticeTexts.faultsOf(actor.tenant, body.notification, "/notification");
      if (unfilled.length > 0) throw invalid(unfilled);
      const { at, timezone = "UTC", before, scopes = [], notification: notice } = body;
      const given = { at: new Date(at), timezone, before: before ?? null, scopes: [...new Set(scopes)], notice };
      const { isNew, ...stored } = await keepReminder(pool, actor.tenant, params.key, given);
      const answer = await withPlan(stored);
      const next = answer.plan.find(({ status }) => status === "planned");
      if (next) plan(Date.parse(next.dueAt));
      return { status: isNew ? 201 : 200, body: answer };
    },
  });

  const read = route({
    method: "GET",
    path: "/v1/reminders/:key",
    summary: "Read a reminder, its plan and what was sent",
    tag,
    scope: "read",
    params,
    answers: { 200: { description: "The reminder", schema: detail } },
    async handle({ params, actor }) {
      const found = await findReminder(pool, actor.tenant, params.key);
      if (!found) throw noSuch(params.key);
      return { status: 200, body: await withPlan(found) };
    },
  });

  const list = route({
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

  const remove = route({
    method: "DELETE",
    path: "/v1/reminders/:key",
    summary: "Forget a reminder and cancel what is planned",
    tag,
    scope: "send",
    params,
    answers: { 204: { description: "Nothing more is sent for it" } },
    async handle({ params, actor }) {
      if (!(await deleteReminder(pool, actor.tenant, params.key))) throw noSuch(params.key);
      return { status: 204 };
    },
  });

  return [list, put, read, remove];
}

function faultsOfReminder(body: Static<typeof ReminderRequest>, at: Date): Fault[] {
  const { timezone = "UTC", before = [], notification } = body;
  return [
    ...(isTimeZone(timezone) ? [] : [{ path: "/timezone", message: "must be a time zone like Europe/Paris" }]),
    ...faultsOfOffsets(before),
    ...faultsOfNotice(notification, "/notification", at),
  ];
}

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
