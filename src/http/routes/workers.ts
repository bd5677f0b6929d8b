// /v1/workers: who delivers.

import { Type } from "typebox";
import { ENGINES } from "#domain/handoff.ts";
import { CHANNELS, Instant, oneOf } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import { type Route, route } from "#http/core/route.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listWorkers } from "#store/workers.ts";

export function workerRoutes({ db, silentMs }: { db: Queryable; silentMs: number }): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/workers",
    summary: "Workers and their heartbeats",
    detail:
      "Those alive, and those that went during the last hour. `takes` is what one is restricted to; where it names nothing, it takes everything.",
    tag: "Queue",
    scope: "read",
    answers: {
      200: {
        description: "The workers, the newest first",
        schema: Type.Object({
          data: Type.Array(
            Type.Object({
              name: Type.String(),
              alive: Type.Boolean(),
              startedAt: Instant,
              seenAt: Instant,
              stoppedAt: Type.Optional(Instant),
              held: Type.Optional(Type.Integer()),
              sending: Type.Optional(Type.Integer()),
              delivered: Type.Optional(Type.Integer()),
              engines: Type.Array(oneOf(ENGINES)),
              takes: Type.Object({
                lanes: Type.Optional(Type.Array(oneOf(PRIORITIES))),
                channels: Type.Optional(Type.Array(oneOf(CHANNELS))),
                tenants: Type.Optional(Type.Array(Type.String())),
                regions: Type.Optional(Type.Array(Type.String())),
              }),
            }),
          ),
        }),
      },
    },
    async handle() {
      const workers = await listWorkers(db, silentMs);
      const data = workers.map(({ name, isAlive, startedAt, seenAt, stoppedAt, takes, engines, stats }) => ({
        name,
        alive: isAlive,
        startedAt: startedAt.toISOString(),
        seenAt: seenAt.toISOString(),
        ...(stoppedAt && { stoppedAt: stoppedAt.toISOString() }),
        ...stats,
        engines: engines ?? [],
        takes: takes ?? {},
      }));
      return { status: 200, body: { data } };
    },
  });
  return [list];
}
