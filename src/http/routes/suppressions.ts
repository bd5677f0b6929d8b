// /v1/suppressions: addresses to which nothing more is sent.

import { Type } from "typebox";
import { Instant, oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { type Route, route } from "#http/core/route.ts";
import { pageBody } from "#http/core/schemas.ts";
import { addSuppression, liftSuppression, type SuppressionWorld } from "#steps/manage/suppressions.ts";
import { listSuppressions, type Suppression } from "#store/suppressions.ts";

const tag = "Suppressions";
const address = (maxLength: number) =>
  Type.String({
    minLength: 3,
    maxLength,
    pattern: "^[^\\u0001-\\u0020\\u007f]+$",
    "x-expects": "an e-mail address or phone number",
  });
const Address = address(254);
/** In lower case, in which a few letters are two. */
const KeptAddress = address(508);
const SuppressionBody = Type.Object({
  address: KeptAddress,
  why: oneOf(["bounce", "complaint", "manual"]),
  reason: Type.Optional(Type.String()),
  at: Instant,
});

export function suppressionRoutes({ pool }: SuppressionWorld): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/suppressions",
    summary: "Addresses to which nothing more is sent",
    detail: "Hard bounces and complaints put addresses here by themselves. A send to one ends as `suppressed`.",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(KeptAddress),
    }),
    answers: { 200: { description: "One page, in order of the addresses", schema: pageBody(SuppressionBody) } },
    async handle({ query: { limit = 50, cursor = "" }, actor }) {
      const found = await listSuppressions(pool, actor.tenant, cursor, limit + 1);
      const data = found.slice(0, limit).map(bodyOf);
      return { status: 200, body: { data, nextCursor: found.length > limit ? (data.at(-1)?.address ?? null) : null } };
    },
  });

  const put = route({
    method: "PUT",
    path: "/v1/suppressions/:address",
    summary: "Suppress an e-mail address or phone number by hand",
    detail: "Workers see it within five seconds.",
    tag,
    scope: "send",
    params: strict({ address: Address }),
    body: strict({ reason: Type.Optional(Type.String({ minLength: 1, maxLength: 300 })) }),
    isBodyOptional: true,
    answers: { 200: { description: "Suppressed", schema: SuppressionBody } },
    async handle({ params, body, actor }) {
      const kept = await addSuppression({ pool }, actor, params.address, body.reason);
      return { status: 200, body: bodyOf(kept) };
    },
  });

  const remove = route({
    method: "DELETE",
    path: "/v1/suppressions/:address",
    summary: "Send to an address again",
    tag,
    scope: "send",
    params: strict({ address: KeptAddress }),
    answers: { 204: { description: "It is no longer suppressed" } },
    async handle({ params, actor }) {
      if (!(await liftSuppression({ pool }, actor, params.address))) {
        throw new Problem("NOT_FOUND", "the address is not suppressed");
      }
      return { status: 204 };
    },
  });

  return [list, put, remove];
}

const bodyOf = ({ address, why, reason, at }: Suppression) => ({
  address,
  why,
  ...(reason !== null && { reason }),
  at: at.toISOString(),
});
