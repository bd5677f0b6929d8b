// /v1/dev/clock: time travel, in development only.

import { Type } from "typebox";
import { DURATION, parseDuration } from "#domain/duration.ts";
import { Instant, strict } from "#domain/notification.ts";
import { invalid } from "#domain/problems.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { type ClockWorld, moveClock, resetClock } from "#steps/manage/clock.ts";
import { type Clocks, readClocks } from "#store/moved-clock.ts";
import { DEV_TAG } from "./dev.ts";

const ClockBody = Type.Object({ now: Instant, trueNow: Instant, movedMs: Type.Integer() });

export function devClockRoutes(world: ClockWorld): Route[] {
  const show = route({
    method: "GET",
    path: "/v1/dev/clock",
    summary: "What the clock shows, and the true time",
    detail: "Only where `CARILLON_DEVELOPMENT` is true.",
    tag: DEV_TAG,
    scope: "read",
    answers: { 200: { description: "Both", schema: ClockBody } },
    handle: async () => ({ status: 200, body: bodyOf(await readClocks(world.pool)) }),
  });

  const move = route({
    method: "POST",
    path: "/v1/dev/clock",
    summary: "Move the clock on",
    detail:
      "For everybody and all processes at once: what is due by then is sent, what expires by then is over. `by` is a duration, `to` an instant. " +
      "For the default tenant's administrators, and only where `CARILLON_DEVELOPMENT` is true.",
    tag: DEV_TAG,
    scope: "admin",
    body: Type.Union([
      strict({ by: Type.String({ pattern: DURATION, "x-expects": "an ISO 8601 duration such as P1D or PT1H30M" }) }),
      strict({ to: Instant }),
    ]),
    answers: { 200: { description: "What it shows now", schema: ClockBody } },
    async handle({ body, actor }) {
      const by = "by" in body ? parseDuration(body.by) : undefined;
      if ("by" in body && !by) throw invalid([{ path: "/by", message: "must be an ISO 8601 duration" }]);
      const moved = await moveClock(world, actor, by ? { by } : { to: new Date("to" in body ? body.to : "") });
      return { status: 200, body: bodyOf(orThrow(moved)) };
    },
  });

  const reset = route({
    method: "DELETE",
    path: "/v1/dev/clock",
    summary: "Set the clock back to the true time",
    detail:
      "What was made meanwhile keeps its times: it comes first in lists, and what was planned waits for its time. " +
      "For the default tenant's administrators, and only where `CARILLON_DEVELOPMENT` is true.",
    tag: DEV_TAG,
    scope: "admin",
    answers: { 200: { description: "What it shows now", schema: ClockBody } },
    handle: async ({ actor }) => ({ status: 200, body: bodyOf(orThrow(await resetClock(world, actor))) }),
  });

  return [show, move, reset];
}

const bodyOf = ({ now, trueNow }: Clocks) => ({
  now: now.toISOString(),
  trueNow: trueNow.toISOString(),
  movedMs: now.getTime() - trueNow.getTime(),
});
