// /v1/sources and /v1/sinks: where requests come from besides HTTP, and where facts go. What they refused: refusals.ts.

import { type TProperties, Type } from "typebox";
import { CONNECTOR_STATES, type ConnectorKind } from "#domain/connector.ts";
import { writtenPosition } from "#domain/fact.ts";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { ConnectorName, Reason } from "#http/core/schemas.ts";
import {
  type Connector,
  type ConnectorWorld,
  forgetSink,
  type ListedSink,
  type ListedSource,
  listSinks,
  listSources,
  pauseConnector,
  replaySink,
  resumeConnector,
} from "#steps/manage/connectors.ts";
import { mustOperate } from "#steps/manage/keys.ts";

const params = strict({ name: ConnectorName });
const COMMON = {
  name: Type.String(),
  type: Type.String(),
  configured: Type.Boolean(),
  state: oneOf(CONNECTOR_STATES),
  since: Type.Optional(Instant),
  reason: Type.Optional(Type.String()),
  pausedBy: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  carried: Type.Integer(),
  refused: Type.Integer(),
  movedAt: Type.Optional(Instant),
};
const OffsetBody = Type.Object({
  topic: Type.String(),
  partition: Type.Integer(),
  next: Type.Integer(),
  waiting: Type.Optional(Type.Integer()),
  movedAt: Instant,
});
const BODIES = {
  source: { ...COMMON, lag: Type.Object({ messages: Type.Optional(Type.Integer()) }), offsets: Type.Array(OffsetBody) },
  sink: { ...COMMON, lag: Type.Object({ ms: Type.Integer(), facts: Type.Integer() }) },
} satisfies { [kind in ConnectorKind]: TProperties };
const PLACES = {
  source: { path: "/v1/sources", tag: "Sources" },
  sink: { path: "/v1/sinks", tag: "Sinks" },
} as const;
const LISTED = {
  source:
    "`offsets` is the next message of each partition that was ever read, and how many `waiting` behind it were known when it last moved; `lag` is their sum.",
  sink: "`lag` is how long ago that happened which it is told next, and how many facts it has not been told, of whatever type, counted up to 10,000.",
};
const PAUSED = {
  source: "No message more is read, within a few seconds; the broker keeps them.",
  sink: "No page more is handed over; what happens meanwhile waits, for as long as the feed keeps it.",
};

export const connectorRoutes = (world: ConnectorWorld): Route[] => [
  ...(["source", "sink"] as const).flatMap((kind) => [list(world, kind), pause(world, kind), resume(world, kind)]),
  replay(world),
  forget(world),
];

const listed = async ({ pool: db, configured }: ConnectorWorld, kind: ConnectorKind) =>
  kind === "sink"
    ? (await listSinks({ db, configured })).map(bodyOfSink)
    : (await listSources({ db, configured })).map(bodyOfSource);

const one = async (world: ConnectorWorld, kind: ConnectorKind, name: string) =>
  (await listed(world, kind)).find((connector) => connector.name === name);

const list = (world: ConnectorWorld, kind: ConnectorKind): Route =>
  route({
    method: "GET",
    path: PLACES[kind].path,
    summary: `How the ${kind}s stand`,
    detail:
      "For the default tenant's administrators. `running`; `paused`, `since` when and for which `reason`; `failing`, `since` when and with which `error`: it is tried again; `idle`: no " +
      "process runs it. `configured`: whether the configuration of the process that answers has it. `carried` and `refused` count from its beginning. " +
      LISTED[kind],
    tag: PLACES[kind].tag,
    scope: "admin",
    turn: "large",
    answers: {
      200: { description: "All of them", schema: Type.Object({ data: Type.Array(Type.Object(BODIES[kind])) }) },
    },
    async handle({ actor }) {
      orThrow(mustOperate(actor));
      return { status: 200, body: { data: await listed(world, kind) } };
    },
  });

const pause = (world: ConnectorWorld, kind: ConnectorKind): Route =>
  route({
    method: "POST",
    path: `${PLACES[kind].path}/:name/pause`,
    summary: `Pause a ${kind}`,
    detail: `${PAUSED[kind]} Pausing again changes the reason.`,
    tag: PLACES[kind].tag,
    scope: "admin",
    params,
    body: strict({ reason: Reason }),
    answers: { 200: { description: `The ${kind}`, schema: Type.Object(BODIES[kind]) } },
    async handle({ params: { name }, body: { reason }, actor }) {
      orThrow(await pauseConnector(world, actor, { kind, name }, reason));
      return { status: 200, body: await one(world, kind, name) };
    },
  });

const resume = (world: ConnectorWorld, kind: ConnectorKind): Route =>
  route({
    method: "POST",
    path: `${PLACES[kind].path}/:name/resume`,
    summary: `Go on with a ${kind}`,
    detail: "From where it was. What is not paused stays as it is.",
    tag: PLACES[kind].tag,
    scope: "admin",
    params,
    answers: { 200: { description: `The ${kind}`, schema: Type.Object(BODIES[kind]) } },
    async handle({ params: { name }, actor }) {
      orThrow(await resumeConnector(world, actor, { kind, name }));
      return { status: 200, body: await one(world, kind, name) };
    },
  });

const replay = (world: ConnectorWorld): Route =>
  route({
    method: "POST",
    path: "/v1/sinks/:name/replay",
    summary: "Tell a sink again what happened since an instant",
    detail:
      "Whether it was told then or not, in order, and on to what it has not been told yet. It is only ever sent back: where it has not come as far as that instant, it goes " +
      "on from where it is, and `moved` is false. 410 `RESET`: what happened then is no longer kept; the answer's `next` is the oldest that is.",
    tag: "Sinks",
    scope: "admin",
    params,
    body: strict({ since: Instant }),
    answers: {
      200: {
        description: "From where on it is told",
        schema: Type.Object({ next: Type.String(), moved: Type.Boolean() }),
      },
      410: { description: "`RESET`: what happened then is no longer kept; `next` is the oldest that is" },
    },
    async handle({ params: { name }, body: { since }, actor }) {
      const { next, isMoved } = orThrow(await replaySink(world, actor, name, new Date(since)));
      return { status: 200, body: { next: writtenPosition(next), moved: isMoved } };
    },
  });

const forget = (world: ConnectorWorld): Route =>
  route({
    method: "DELETE",
    path: "/v1/sinks/:name",
    summary: "Forget a sink that is no longer configured",
    detail:
      "And how far it had come. 409 `SINK_IN_USE`: the process that answers has it in its configuration, or some process runs it. With the same name it begins anew.",
    tag: "Sinks",
    scope: "admin",
    params,
    answers: { 204: { description: "Forgotten" } },
    async handle({ params: { name }, actor }) {
      orThrow(await forgetSink(world, actor, name));
      return { status: 204 };
    },
  });

const bodyOfSink = ({ lag, ...sink }: ListedSink) => ({
  ...bodyOf(sink),
  lag: { ms: Math.round(lag?.ms ?? 0), facts: lag?.facts ?? 0 },
});

function bodyOfSource({ offsets, ...source }: ListedSource) {
  const partitions = offsets.map(({ topic, partition, next, ends, movedAt }) => ({
    topic,
    partition,
    next,
    ...(ends !== null && { waiting: Math.max(0, ends - next) }),
    movedAt: movedAt.toISOString(),
  }));
  const isKnown = partitions.length > 0 && partitions.every(({ waiting }) => waiting !== undefined);
  const messages = partitions.reduce((sum, { waiting = 0 }) => sum + waiting, 0);
  return { ...bodyOf(source), lag: isKnown ? { messages } : {}, offsets: partitions };
}

function bodyOf({ name, type, isConfigured, state, carried, refused, ...more }: Connector) {
  const { movedAt, error, failedAt, pausedAt, pausedBy, reason } = more;
  const since = pausedAt ?? failedAt;
  return {
    name,
    type,
    configured: isConfigured,
    state,
    ...(since && { since: since.toISOString() }),
    ...(reason !== null && { reason }),
    ...(pausedBy !== null && { pausedBy }),
    ...(error !== null && { error }),
    carried,
    refused,
    ...(movedAt && { movedAt: movedAt.toISOString() }),
  };
}
