// /v1/reminder-scopes: offsets that reminders inherit.

import { Type } from "typebox";
import { DURATION } from "#domain/duration.ts";
import { Instant, strict } from "#domain/notification.ts";
import { invalid, Problem } from "#domain/problems.ts";
import { faultsOfOffsets, TENANT_SCOPE } from "#domain/reminder.ts";
import { type Route, route } from "#http/core/route.ts";
import { pageBody } from "#http/core/schemas.ts";
import { type ReminderWorld, setScope } from "#steps/manage/reminders.ts";
import { findScope, listScopes, type StoredScope } from "#store/reminder-scopes.ts";

const tag = "Reminders";

export const Before = Type.Array(
  Type.String({ pattern: DURATION, maxLength: 40, "x-expects": "a duration like P1D or PT1H" }),
  { maxItems: 20 },
);
export const Scope = Type.String({
  pattern: "^[a-z][a-z0-9_-]{0,31}:[!-~]{1,128}$",
  maxLength: 161,
  "x-expects": "a scope like guild:1",
});
const ScopeOrTenant = Type.String({
  pattern: `^(${TENANT_SCOPE}|[a-z][a-z0-9_-]{0,31}:[!-~]{1,128})$`,
  maxLength: 161,
  "x-expects": `a scope like guild:1, or ${TENANT_SCOPE}`,
});

const ScopeBody = Type.Object({
  scope: ScopeOrTenant,
  before: Before,
  updatedAt: Instant,
  replan: Type.Optional(
    Type.Object({
      done: Type.Integer(),
      total: Type.Integer(),
      startedAt: Instant,
      finishedAt: Type.Optional(Instant),
    }),
  ),
});

export function reminderScopeRoutes(world: Pick<ReminderWorld, "pool" | "plan">): Route[] {
  const { pool } = world;
  const params = strict({ scope: ScopeOrTenant });
  const noSuch = (scope: string) => new Problem("NOT_FOUND", `the scope ${scope} has no offsets`);

  const put = route({
    method: "PUT",
    path: "/v1/reminder-scopes/:scope",
    summary: "Set the offsets that reminders of a scope inherit",
    detail:
      "The reminders that inherit them are re-planned in the background; `replan` tells how far that is. " +
      "An empty list lets the next scope decide.",
    tag,
    scope: "send",
    params,
    body: strict({ before: Before }),
    answers: { 200: { description: "As it is kept", schema: ScopeBody } },
    async handle({ params: { scope }, body: { before }, actor }) {
      const faults = faultsOfOffsets(before);
      if (faults.length > 0) throw invalid(faults);
      await setScope(world, actor, scope, before);
      const kept = await findScope(pool, actor.tenant, scope);
      if (!kept) throw noSuch(scope);
      return { status: 200, body: bodyOfScope(kept) };
    },
  });

  const read = route({
    method: "GET",
    path: "/v1/reminder-scopes/:scope",
    summary: "Read a scope's offsets, and how far their last change has come",
    tag,
    scope: "read",
    params,
    answers: { 200: { description: "As it is kept", schema: ScopeBody } },
    async handle({ params: { scope }, actor }) {
      const kept = await findScope(pool, actor.tenant, scope);
      if (!kept) throw noSuch(scope);
      return { status: 200, body: bodyOfScope(kept) };
    },
  });

  const list = route({
    method: "GET",
    path: "/v1/reminder-scopes",
    summary: "List scopes that have offsets",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(ScopeOrTenant),
    }),
    answers: { 200: { description: "One page, in order of their names", schema: pageBody(ScopeBody) } },
    async handle({ query: { limit = 50, cursor = "" }, actor }) {
      const found = await listScopes(pool, actor.tenant, cursor, limit + 1);
      const data = found.slice(0, limit).map(bodyOfScope);
      return { status: 200, body: { data, nextCursor: found.length > limit ? (data.at(-1)?.scope ?? null) : null } };
    },
  });

  const remove = route({
    method: "DELETE",
    path: "/v1/reminder-scopes/:scope",
    summary: "Take a scope's offsets away",
    tag,
    scope: "send",
    params,
    answers: { 204: { description: "Its reminders are re-planned in the background" } },
    async handle({ params: { scope }, actor }) {
      if (!(await setScope(world, actor, scope, null))) throw noSuch(scope);
      return { status: 204 };
    },
  });

  return [list, put, read, remove];
}

const bodyOfScope = ({ scope, before, updatedAt, replan }: StoredScope) => ({
  scope,
  before,
  updatedAt: updatedAt.toISOString(),
  ...(replan && {
    replan: {
      done: replan.done,
      total: replan.total,
      startedAt: replan.startedAt.toISOString(),
      ...(replan.finishedAt && { finishedAt: replan.finishedAt.toISOString() }),
    },
  }),
});
