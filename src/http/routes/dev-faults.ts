// /v1/dev/faults: the next sends fail as was asked for, in development only.

import { type Static, Type } from "typebox";
import { DEV_FAULTS } from "#domain/dev-fault.ts";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { ProviderName } from "#http/core/schemas.ts";
import { type FaultWorld, forgetFaults, injectFault } from "#steps/manage/dev-faults.ts";
import { type FaultRow, listFaults } from "#store/dev-faults.ts";
import { DEV_TAG } from "./dev.ts";

const RetryAfter = Type.Integer({ minimum: 1, maximum: 3_600 });
const FaultBody = Type.Object({
  id: Type.String(),
  provider: Type.Optional(ProviderName),
  channel: Type.Optional(oneOf(CHANNELS)),
  fault: oneOf(DEV_FAULTS),
  next: Type.Integer(),
  left: Type.Integer(),
  retryAfterSeconds: Type.Optional(RetryAfter),
  at: Instant,
});

export function devFaultRoutes(world: FaultWorld): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/dev/faults",
    summary: "Faults that were asked for, and how many sends they are still for",
    detail: "The newest first, those that are used up included. Only where `CARILLON_DEVELOPMENT` is true.",
    tag: DEV_TAG,
    scope: "read",
    answers: { 200: { description: "All of the tenant", schema: Type.Object({ data: Type.Array(FaultBody) }) } },
    async handle({ actor: { tenant } }) {
      return { status: 200, body: { data: (await listFaults(world.pool, tenant)).map(bodyOf) } };
    },
  });

  const inject = route({
    method: "POST",
    path: "/v1/dev/faults",
    summary: "Make the next sends fail",
    detail:
      "Of the tenant's sends that the provider `dev` carries, the next so many of a channel, or of one provider of type `dev` where there are several. " +
      "`429` and `503` sent nothing, `refused` and `dead-recipient` are a no, `hang` never answers, `lost-answer` is kept and nobody hears of it. " +
      "Only where `CARILLON_DEVELOPMENT` is true.",
    tag: DEV_TAG,
    scope: "send",
    body: strict({
      provider: Type.Optional(ProviderName),
      channel: Type.Optional(oneOf(CHANNELS)),
      fault: oneOf(DEV_FAULTS),
      next: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 1 })),
      retryAfterSeconds: Type.Optional(RetryAfter),
    }),
    answers: { 201: { description: "It waits for them", schema: FaultBody } },
    async handle({ body: { next = 1, ...given }, actor }) {
      return { status: 201, body: bodyOf(orThrow(await injectFault(world, actor, { next, ...given }))) };
    },
  });

  const clear = route({
    method: "DELETE",
    path: "/v1/dev/faults",
    summary: "Forget all faults that were asked for",
    tag: DEV_TAG,
    scope: "send",
    answers: { 204: { description: "Sends go well again" } },
    async handle({ actor }) {
      await forgetFaults(world, actor);
      return { status: 204 };
    },
  });

  return [list, inject, clear];
}

const bodyOf = ({ id, provider, channel, fault, next, left, retryAfterSeconds, at }: FaultRow) => ({
  id,
  ...(provider !== null && { provider }),
  ...(channel !== null && { channel: channel as Static<typeof FaultBody>["channel"] }),
  ...{ fault, next, left },
  ...(retryAfterSeconds !== null && { retryAfterSeconds }),
  at: at.toISOString(),
});
