// /v1/schedules: recurring sends.

import { Type } from "typebox";
import { DURATION } from "#domain/duration.ts";
import { Notice } from "#domain/notice.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { CATCH_UPS, nextTicks } from "#domain/schedule.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id, Key, pageBody, strictOneOf, TimeZone } from "#http/core/schemas.ts";
import { endSchedule, keepSchedule, pauseSchedule, type ScheduleWorld } from "#steps/manage/schedules.ts";
import { findSchedule, listRuns, listSchedules, type Run, type StoredSchedule } from "#store/schedules.ts";

const tag = "Schedules";

const ScheduleRequest = strictOneOf(["cron", "every"], {
  cron: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  every: Type.Optional(Type.String({ pattern: DURATION, maxLength: 40, "x-expects": "a duration like PT15M or P1D" })),
  timezone: Type.Optional(TimeZone),
  from: Type.Optional(Instant),
  until: Type.Optional(Instant),
  catchUp: Type.Optional(oneOf(CATCH_UPS)),
  notification: Notice,
});

const ScheduleBody = Type.Interface([ScheduleRequest], {
  key: Key,
  paused: Type.Boolean(),
  nextAt: Type.Optional(Instant),
  error: Type.Optional(Type.String()),
  retryAt: Type.Optional(Instant),
  createdAt: Instant,
  updatedAt: Instant,
});
const RunBody = Type.Object({
  tick: Instant,
  at: Instant,
  outcome: oneOf(["sending", "sent", "skipped", "failed"]),
  skipped: Type.Integer(),
  notificationIds: Type.Array(Id),
  error: Type.Optional(Type.String()),
});

const params = strict({ key: Key });
const noSuch = (key: string) => new Problem("NOT_FOUND", `there is no schedule ${key}`);

export function scheduleRoutes(options: ScheduleWorld): Route[] {
  return [
    list(options),
    put(options),
    read(options),
    next(options),
    runs(options),
    pausing(options, "pause", "Pause a recurring schedule"),
    pausing(options, "resume", "Go on with a paused schedule, from now on"),
    remove(options),
  ];
}

const put = (world: ScheduleWorld): Route =>
  route({
    method: "PUT",
    path: "/v1/schedules/:key",
    summary: "Send the same notification again and again",
    detail:
      "Either `cron` (five fields, or six with seconds) or `every` (a duration, counted from `from`), by the clocks of " +
      "`timezone`. One firing per tick, however many replicas run. Ticks that nobody was there for fire once " +
      "afterwards (`catchUp: once`) or not at all (`skip`). Texts may use `{{ at }}`, the tick, and `{{ key }}`.",
    tag,
    scope: "send",
    params,
    body: ScheduleRequest,
    answers: { 200: { description: "As it is kept", schema: ScheduleBody } },
    async handle({ params, body, actor }) {
      const given = {
        cron: body.cron ?? null,
        every: body.every ?? null,
        timezone: body.timezone ?? "UTC",
        from: body.from === undefined ? undefined : new Date(body.from),
        until: body.until === undefined ? null : new Date(body.until),
        catchUp: body.catchUp ?? "once",
        notice: body.notification,
      };
      return { status: 200, body: bodyOf(orThrow(await keepSchedule(world, actor, params.key, given))) };
    },
  });

const list = ({ pool }: ScheduleWorld): Route =>
  route({
    method: "GET",
    path: "/v1/schedules",
    summary: "List recurring schedules",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Key),
    }),
    answers: { 200: { description: "One page, in order of their keys", schema: pageBody(ScheduleBody) } },
    async handle({ query: { limit = 50, cursor = "" }, actor }) {
      const found = await listSchedules(pool, actor.tenant, cursor, limit + 1);
      const data = found.slice(0, limit).map(bodyOf);
      return { status: 200, body: { data, nextCursor: found.length > limit ? (data.at(-1)?.key ?? null) : null } };
    },
  });

const read = ({ pool }: ScheduleWorld): Route =>
  route({
    method: "GET",
    path: "/v1/schedules/:key",
    summary: "Read a recurring schedule",
    tag,
    scope: "read",
    params,
    answers: { 200: { description: "As it is kept", schema: ScheduleBody } },
    async handle({ params, actor }) {
      const found = await findSchedule(pool, actor.tenant, params.key);
      if (!found) throw noSuch(params.key);
      return { status: 200, body: bodyOf(found) };
    },
  });

const next = ({ pool, now }: ScheduleWorld): Route =>
  route({
    method: "GET",
    path: "/v1/schedules/:key/next",
    summary: "The next times at which it fires",
    tag,
    scope: "read",
    params,
    query: strict({ count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 5 })) }),
    answers: { 200: { description: "The times", schema: Type.Object({ data: Type.Array(Instant) }) } },
    async handle({ params, query: { count = 5 }, actor }) {
      const found = await findSchedule(pool, actor.tenant, params.key);
      if (!found) throw noSuch(params.key);
      const ticks = found.pausedAt ? [] : nextTicks(found, now(), count);
      return { status: 200, body: { data: ticks.map((tick) => tick.toISOString()) } };
    },
  });

const runs = ({ pool }: ScheduleWorld): Route =>
  route({
    method: "GET",
    path: "/v1/schedules/:key/runs",
    summary: "What became of its ticks, the latest first",
    tag,
    scope: "read",
    turn: "large",
    params,
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Instant),
    }),
    answers: { 200: { description: "One page", schema: pageBody(RunBody) } },
    async handle({ params, query: { limit = 50, cursor }, actor }) {
      if (!(await findSchedule(pool, actor.tenant, params.key))) throw noSuch(params.key);
      const before = cursor === undefined ? undefined : new Date(cursor);
      const found = await listRuns(pool, actor.tenant, params.key, before, limit + 1);
      const data = found.slice(0, limit).map(bodyOfRun);
      return { status: 200, body: { data, nextCursor: found.length > limit ? (data.at(-1)?.tick ?? null) : null } };
    },
  });

const pausing = (world: ScheduleWorld, verb: "pause" | "resume", summary: string): Route =>
  route({
    method: "POST",
    path: `/v1/schedules/:key/${verb}`,
    summary,
    tag,
    scope: "send",
    params,
    answers: { 200: { description: "As it is kept", schema: ScheduleBody } },
    async handle({ params, actor }) {
      const found = await pauseSchedule(world, actor, params.key, verb === "pause");
      if (!found) throw noSuch(params.key);
      return { status: 200, body: bodyOf(found) };
    },
  });

const remove = ({ pool }: ScheduleWorld): Route =>
  route({
    method: "DELETE",
    path: "/v1/schedules/:key",
    summary: "End a recurring schedule and forget its runs",
    tag,
    scope: "send",
    params,
    answers: { 204: { description: "It fires no more; what it sent stays in the record" } },
    async handle({ params, actor }) {
      if (!(await endSchedule(pool, actor, params.key))) throw noSuch(params.key);
      return { status: 204 };
    },
  });

function bodyOf(schedule: StoredSchedule) {
  const {
    key,
    cron,
    every,
    timezone,
    from,
    until,
    catchUp,
    notice,
    nextAt,
    pausedAt,
    error,
    retryAt,
    createdAt,
    updatedAt,
  } = schedule;
  return {
    key,
    ...(cron !== null && { cron }),
    ...(every !== null && { every }),
    timezone,
    from: from.toISOString(),
    ...(until && { until: until.toISOString() }),
    catchUp,
    notification: notice,
    paused: pausedAt !== null,
    ...(nextAt && { nextAt: nextAt.toISOString() }),
    ...(error !== null && { error }),
    ...(retryAt && { retryAt: retryAt.toISOString() }),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

const bodyOfRun = ({ tick, at, outcome, skipped, notifications, error }: Run) => ({
  tick: tick.toISOString(),
  at: at.toISOString(),
  outcome,
  skipped,
  notificationIds: notifications,
  ...(error !== null && { error }),
});
