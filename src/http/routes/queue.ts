// What waits, and whether everything accepted is accounted for.

import { Type } from "typebox";
import { allows } from "#domain/api-key.ts";
import { PLACES } from "#domain/handoff.ts";
import { CHANNELS, oneOf } from "#domain/notification.ts";
import { PRIORITIES, rankOf } from "#domain/priority.ts";
import { MOST_WAITING } from "#domain/statistics.ts";
import { ENDINGS } from "#domain/status.ts";
import { type Route, route } from "#http/core/route.ts";
import type { Depth, LaneDepths, Queue } from "#queue/queue.ts";
import { readLedger, readWaiting } from "#record/ledger.ts";
import { isOperator } from "#steps/manage/keys.ts";
import { findWhereabouts } from "#steps/manage/move-queue.ts";
import { seenBy } from "#steps/manage/pauses.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listPauses } from "#store/pauses.ts";
import { listTakes } from "#store/workers.ts";
import { bodyOfPause, PauseBody } from "./pauses.ts";
import { bodyOfMove, MoveBody } from "./queue-moves.ts";

const counts = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, Type.Integer()]));

const UntakenBody = Type.Object({
  priority: oneOf(PRIORITIES),
  channel: Type.Optional(oneOf(CHANNELS)),
  region: Type.Optional(Type.String()),
  tenant: Type.String(),
  count: Type.Integer(),
  oldestAgeMs: Type.Integer(),
});

export type QueueOptions = { db: Queryable; queue: Pick<Queue, "depthOf" | "untaken">; silentMs: number };

export function queueRoutes({ db, queue, silentMs }: QueueOptions): Route[] {
  const depth = route({
    method: "GET",
    path: "/v1/queue",
    summary: "Depth of the queue, lane by lane; what is paused, and what nobody takes",
    detail:
      "`untaken` is what waits and no living worker takes, by lane, tenant, channel and region: counted up to 1,000 each, at most ten of " +
      "a tenant. The default tenant's administrators see it of all tenants; `depth` is one's own. `engine` is where ready work waits that is accepted now; " +
      "those administrators see in `engines` how much waits where, up to 10,000 of each, and in `migration` what is being moved. " +
      "What is queued and what is scheduled in a lane is counted up to 10,000; where there is more of one, it is reckoned from what was accepted and what " +
      "has ended, and where there is of both, each is at least that: `isEstimate`.",
    tag: "Queue",
    scope: "read",
    turn: "large",
    answers: {
      200: {
        description: "The queue now",
        schema: Type.Object({
          engine: oneOf(PLACES),
          engines: Type.Array(
            Type.Object({
              name: oneOf(PLACES),
              waiting: Type.Integer(),
              isEstimate: Type.Boolean(),
              current: Type.Boolean(),
            }),
          ),
          migration: Type.Optional(MoveBody),
          depth: Type.Object(counts(PRIORITIES)),
          processing: Type.Integer(),
          scheduled: Type.Integer(),
          oldestAgeMs: Type.Integer(),
          isEstimate: Type.Boolean(),
          paused: Type.Array(PauseBody),
          untaken: Type.Array(UntakenBody),
        }),
      },
    },
    async handle({ actor }) {
      const depth = depthBy(await queue.depthOf(db, actor.tenant, MOST_WAITING), await readWaiting(db, actor.tenant));
      const paused = (await listPauses(db)).filter((pause) => seenBy(actor, pause)).map(bodyOfPause);
      const seesAll = isOperator(actor) && allows(actor.scopes, "admin");
      const flows = await queue.untaken(db, await listTakes(db, silentMs), seesAll ? undefined : actor.tenant);
      const untaken = flows.map(({ lane, ...flow }) => ({ priority: lane, ...flow }));
      const { engine, places, move } = await findWhereabouts(db, actor);
      const engines = places.map(({ isCurrent, ...place }) => ({ ...place, current: isCurrent }));
      const migration = move && move.endedAt === null ? bodyOfMove(move) : undefined;
      return { status: 200, body: { engine, engines, ...(migration && { migration }), ...depth, paused, untaken } };
    },
  });

  const ledger = route({
    method: "GET",
    path: "/v1/ledger",
    summary: "The balance of everything accepted",
    detail:
      "`accepted` equals `waiting` plus all endings, at every moment: the figures come from one snapshot, and cost no more however much there is. What retention " +
      "drops stays counted. Where more than 10,000 wait, or a great deal has just happened, `waiting` is what is left of `accepted` and not counted: `isEstimate`.",
    tag: "Queue",
    scope: "read",
    turn: "large",
    answers: {
      200: {
        description: "The ledger",
        schema: Type.Object({
          ...counts(["accepted", "waiting", ...ENDINGS]),
          balanced: Type.Boolean(),
          isEstimate: Type.Boolean(),
        }),
      },
    },
    async handle({ actor }) {
      const { accepted, isEstimate, ...parts } = await readLedger(db, actor.tenant);
      const sum = Object.values(parts).reduce((total, part) => total + part, 0);
      return { status: 200, body: { accepted, ...parts, balanced: accepted === sum, isEstimate } };
    },
  });

  return [depth, ledger];
}

/** Where only one of a lane was not counted to its end, it is what the others leave of all that waits there. */
function depthBy(
  { queued, scheduled, processing, isPartial, oldestAgeMs }: LaneDepths,
  waiting: ReadonlyMap<number, number>,
): Depth & { isEstimate: boolean } {
  const lanes = PRIORITIES.map((lane) => {
    const [ready, early, sending] = [queued[lane], scheduled[lane], processing[lane]];
    const total = waiting.get(rankOf[lane]) ?? 0;
    const [isReadyCut, isEarlyCut] = [isPartial || ready > MOST_WAITING, early > MOST_WAITING];
    return {
      lane,
      ready: isReadyCut && !isEarlyCut ? Math.max(ready, total - early - sending) : ready,
      early: isEarlyCut && !isReadyCut ? Math.max(early, total - ready - sending) : early,
      sending,
      isCut: isReadyCut || isEarlyCut,
    };
  });
  const sum = (of: "early" | "sending") => lanes.reduce((all, one) => all + one[of], 0);
  return {
    depth: Object.fromEntries(lanes.map(({ lane, ready }) => [lane, ready])) as Depth["depth"],
    processing: sum("sending"),
    scheduled: sum("early"),
    oldestAgeMs,
    isEstimate: lanes.some(({ isCut }) => isCut),
  };
}
