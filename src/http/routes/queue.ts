// What waits, and whether everything accepted is accounted for.

import { Type } from "typebox";
import { PRIORITIES } from "#domain/priority.ts";
import { ENDINGS } from "#domain/status.ts";
import { type Route, route } from "#http/core/route.ts";
import type { Queue } from "#queue/queue.ts";
import { readLedger } from "#record/ledger.ts";
import type { Queryable } from "#store/connection/database.ts";

const counts = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, Type.Integer()]));

export function queueRoutes({ db, queue }: { db: Queryable; queue: Pick<Queue, "name" | "depth"> }): Route[] {
  const depth = route({
    method: "GET",
    path: "/v1/queue",
    summary: "Depth of the queue, lane by lane",
    tag: "Queue",
    scope: "read",
    turn: "large",
    answers: {
      200: {
        description: "The queue now",
        schema: Type.Object({
          engine: Type.String(),
          depth: Type.Object(counts(PRIORITIES)),
          processing: Type.Integer(),
          scheduled: Type.Integer(),
          oldestAgeMs: Type.Integer(),
        }),
      },
    },
    handle: async ({ actor }) => ({
      status: 200,
      body: { engine: queue.name, ...(await queue.depth(db, actor.tenant)) },
    }),
  });

  const ledger = route({
    method: "GET",
    path: "/v1/ledger",
    summary: "The balance of everything accepted",
    detail: "`accepted` equals `waiting` plus all endings, at every moment: the figures come from one snapshot.",
    tag: "Queue",
    scope: "read",
    turn: "large",
    answers: {
      200: {
        description: "The ledger",
        schema: Type.Object({ ...counts(["accepted", "waiting", ...ENDINGS]), balanced: Type.Boolean() }),
      },
    },
    async handle({ actor }) {
      const { accepted, ...parts } = await readLedger(db, actor.tenant);
      const sum = Object.values(parts).reduce((total, part) => total + part, 0);
      return { status: 200, body: { accepted, ...parts, balanced: accepted === sum } };
    },
  });

  return [depth, ledger];
}
