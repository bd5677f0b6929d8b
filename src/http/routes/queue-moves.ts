// /v1/queue/migration: ready work moved from one engine to another. It is for the default tenant's administrators.

import { Type } from "typebox";
import { MOVE_STRATEGIES, PLACES } from "#domain/handoff.ts";
import { Instant, oneOf } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { type Route, route } from "#http/core/route.ts";
import type { MoveAudit } from "#queue/postgres/move-audits.ts";
import type { Move } from "#queue/postgres/moves.ts";
import { abortQueueMove, findWhereabouts, type MoveWorld, moveQueue } from "#steps/manage/move-queue.ts";

const AuditBody = Type.Object({
  state: oneOf(["looking", "balanced", "unbalanced"]),
  isWhole: Type.Boolean({ description: "False where not everything could be looked at" }),
  engines: Type.Array(
    Type.Object({
      engine: oneOf(PLACES),
      accepted: Type.Integer({ description: "How many it was given" }),
      ended: Type.Integer({ description: "How many of those have ended" }),
      waiting: Type.Integer({ description: "How many of those wait, wherever that is now" }),
    }),
  ),
  amiss: Type.Integer({ description: "How many are nowhere, in two places, or have ended and yet wait" }),
  examples: Type.Array(Type.String(), { examples: [["01a1de40-9f99-76c9-9e2a-360eb4bcc864"]] }),
  at: Type.Optional(Instant),
});

export const MoveBody = Type.Object({
  from: oneOf(PLACES),
  to: oneOf(PLACES),
  strategy: oneOf(MOVE_STRATEGIES),
  state: oneOf(["moving", "aborting", "done", "aborted"]),
  waiting: Type.Integer({ description: "What waited there when it began" }),
  moved: Type.Integer({ description: "How many were taken over without a worker" }),
  left: Type.Integer({ description: "What still waits where it is moved away from" }),
  startedAt: Instant,
  endedAt: Type.Optional(Instant),
  audit: Type.Optional(AuditBody),
});

export const bodyOfMove = ({
  source,
  target,
  strategy,
  state,
  waiting,
  moved,
  left,
  startedAt,
  endedAt,
  audit,
}: Move) => ({
  from: source,
  to: target,
  strategy,
  state,
  waiting,
  moved,
  left,
  startedAt: startedAt.toISOString(),
  ...(endedAt && { endedAt: endedAt.toISOString() }),
  ...(audit && { audit: bodyOfAudit(audit) }),
});

const bodyOfAudit = ({ at, ...audit }: MoveAudit) => ({
  ...audit,
  ...(at !== null && { at: new Date(at).toISOString() }),
});

export function queueMoveRoutes(world: MoveWorld): Route[] {
  const start = route({
    method: "POST",
    path: "/v1/queue/migration",
    summary: "Move ready work to another engine",
    detail:
      "With `live-forward` what is accepted goes to the target from this instant on, and what waits at the source is taken over. With `drain-first` " +
      "it waits in PostgreSQL until workers have emptied the source. 409 `MOVE_REFUSED` while another is under way, and unless every living worker can take from the target.",
    tag: "Queue",
    scope: "admin",
    body: Type.Object({
      to: oneOf(PLACES),
      strategy: Type.Optional(oneOf(MOVE_STRATEGIES)),
    }),
    answers: { 202: { description: "It is under way", schema: MoveBody } },
    async handle({ actor, body: { to, strategy = "live-forward" } }) {
      const move = await moveQueue(world, actor, { target: to, strategy });
      if (move instanceof Problem) throw move;
      return { status: 202, body: bodyOfMove(move) };
    },
  });

  const abort = route({
    method: "DELETE",
    path: "/v1/queue/migration",
    summary: "Go back to where ready work waited before",
    detail:
      "What is accepted goes there again from this instant on, and so does what was moved and has not been taken. Nothing is lost either way. 409 `MOVE_REFUSED` where nothing is being moved.",
    tag: "Queue",
    scope: "admin",
    answers: { 202: { description: "It is being undone", schema: MoveBody } },
    async handle({ actor }) {
      const move = await abortQueueMove(world, actor);
      if (move instanceof Problem) throw move;
      return { status: 202, body: bodyOfMove(move) };
    },
  });

  const look = route({
    method: "GET",
    path: "/v1/queue/migration",
    summary: "How far the move has come that is under way, or the last one",
    detail:
      "When it has ended, `audit` tells step by step, and then for good, whether everything that waited when it began and was accepted since has ended or waits in one place: " +
      "for each engine accepted = ended + waiting. Where that is not so it is `unbalanced`, and `examples` are some that are amiss.",
    tag: "Queue",
    scope: "read",
    answers: { 200: { description: "The move", schema: MoveBody } },
    async handle({ actor }) {
      const { move } = await findWhereabouts(world.pool, actor);
      if (!move) throw new Problem("NOT_FOUND", "nothing was moved yet");
      return { status: 200, body: bodyOfMove(move) };
    },
  });
  return [start, look, abort];
}
