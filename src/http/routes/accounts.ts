// PUT and DELETE /v1/providers/:name: a tenant's own account with a provider.

import { Type } from "typebox";
import { OWN_TYPES, type Settings } from "#channels/settings.ts";
import { oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { ProviderName } from "#http/core/schemas.ts";
import { type AccountWorld, forgetAccount, keepAccount } from "#steps/manage/accounts.ts";

const tag = "Providers";
const params = strict({ name: ProviderName });
const Account = Type.Object({ type: oneOf(OWN_TYPES) }, { additionalProperties: true });

export function accountRoutes(world: AccountWorld): Route[] {
  const put = route({
    method: "PUT",
    path: "/v1/providers/:name",
    summary: "Use the tenant's own account with a provider",
    detail:
      "The settings are sealed with AES-256-GCM before they are stored, and never shown again. Routes stay the deployment's: " +
      "where they name this provider, the tenant's account is used.",
    tag,
    scope: "admin",
    params,
    body: Account,
    answers: { 204: { description: "Kept; other replicas use it within five seconds" } },
    async handle({ params: { name }, body, actor }) {
      orThrow(await keepAccount(world, actor, name, body as Settings));
      return { status: 204 };
    },
  });

  const remove = route({
    method: "DELETE",
    path: "/v1/providers/:name",
    summary: "Go back to the deployment's account",
    tag,
    scope: "admin",
    params,
    answers: { 204: { description: "Forgotten" } },
    async handle({ params: { name }, actor }) {
      if (!(await forgetAccount(world, actor, name))) throw new Problem("NOT_FOUND", `there is no provider ${name}`);
      return { status: 204 };
    },
  });

  return [put, remove];
}
