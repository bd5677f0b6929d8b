// …/pause and …/resume of channels, providers and tenants, and /v1/pauses: what is stopped for now, and why.

import { Type } from "typebox";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { PAUSE_KINDS } from "#domain/pause.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { ProviderName, Reason, TenantName } from "#http/core/schemas.ts";
import { type Pausable, type PauseWorld, pause, resume, seenBy } from "#steps/manage/pauses.ts";
import { listPauses, type PauseRow } from "#store/pauses.ts";

const tag = "Pauses";
const PATHS = {
  channel: { path: "/v1/channels/:name", name: oneOf(CHANNELS) },
  provider: { path: "/v1/providers/:name", name: ProviderName },
  tenant: { path: "/v1/tenants/:name", name: TenantName },
} as const;
const KINDS = ["channel", "provider", "tenant"] as const;

export const PauseBody = Type.Object({
  kind: oneOf(PAUSE_KINDS),
  name: Type.String(),
  /** Of a provider: the tenant whose own account it is. */
  tenant: Type.Optional(Type.String()),
  reason: Type.String(),
  pausedAt: Instant,
  pausedBy: Type.Optional(Type.String()),
  until: Type.Optional(Instant),
});

export const pauseRoutes = (world: PauseWorld): Route[] => [
  ...KINDS.flatMap((kind) => [pauseOne(world, kind), resumeOne(world, kind)]),
  list(world),
];

const pauseOne = (world: PauseWorld, kind: Pausable["kind"]): Route =>
  route({
    method: "POST",
    path: `${PATHS[kind].path}/pause`,
    summary: `Pause a ${kind}`,
    detail:
      "Nothing more of it begins, within about a second; what has begun ends. What waits keeps its place and spends no attempt. With " +
      "`until` it ends by itself. Pausing again changes reason and end. " +
      "A paused provider is passed over for the next of its route. The default tenant's administrators may pause everything, others " +
      "their own accounts and, unless those have paused it, their own tenant.",
    tag,
    scope: "admin",
    params: strict({ name: PATHS[kind].name }),
    body: strict({
      reason: Reason,
      until: Type.Optional(Instant),
    }),
    answers: { 200: { description: "The pause", schema: PauseBody } },
    handle: async ({ params: { name }, body, actor }) => ({
      status: 200,
      body: bodyOfPause(orThrow(await pause(world, actor, { kind, name }, body))),
    }),
  });

const resumeOne = (world: PauseWorld, kind: Pausable["kind"]): Route =>
  route({
    method: "POST",
    path: `${PATHS[kind].path}/resume`,
    summary: `Go on with a ${kind}`,
    detail: "At once and in order. What is not paused stays as it is.",
    tag,
    scope: "admin",
    params: strict({ name: PATHS[kind].name }),
    answers: { 204: { description: "It is not paused" } },
    async handle({ params: { name }, actor }) {
      const problem = await resume(world, actor, { kind, name });
      if (problem) throw problem;
      return { status: 204 };
    },
  });

const list = ({ pool }: Pick<PauseWorld, "pool">): Route =>
  route({
    method: "GET",
    path: "/v1/pauses",
    summary: "What is paused, the longest first",
    detail: "To all but the default tenant, what concerns them.",
    tag,
    scope: "read",
    answers: { 200: { description: "All of it", schema: Type.Object({ data: Type.Array(PauseBody) }) } },
    handle: async ({ actor }) => ({
      status: 200,
      body: { data: (await listPauses(pool)).filter((pause) => seenBy(actor, pause)).map(bodyOfPause) },
    }),
  });

export const bodyOfPause = ({ kind, name, owner, reason, pausedAt, pausedBy, until }: PauseRow) => ({
  kind,
  name,
  ...(owner !== null && { tenant: owner }),
  reason,
  pausedAt: pausedAt.toISOString(),
  ...(pausedBy !== null && { pausedBy }),
  ...(until && { until: until.toISOString() }),
});
