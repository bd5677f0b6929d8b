// /v1/tenants: whose notifications they are, for who runs the deployment.

import { Type } from "typebox";
import { Instant, strict } from "#domain/notification.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { pageBody, TenantName } from "#http/core/schemas.ts";
import { mustOperate } from "#steps/manage/keys.ts";
import { type TenantWorld, weighTenant } from "#steps/manage/tenants.ts";
import { listTenants, type TenantRow } from "#store/tenants.ts";

const tag = "Tenants";
const Weight = Type.Integer({ minimum: 1, maximum: 100 });
const TenantBody = Type.Object({ name: TenantName, weight: Weight, createdAt: Instant });

export function tenantRoutes({ pool }: TenantWorld): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/tenants",
    summary: "Tenants and their weights",
    detail: "For the default tenant's administrators.",
    tag,
    scope: "admin",
    query: strict({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(TenantName),
    }),
    answers: { 200: { description: "One page, in order of their names", schema: pageBody(TenantBody) } },
    async handle({ query: { limit = 50, cursor = "" }, actor }) {
      orThrow(mustOperate(actor));
      const found = await listTenants(pool, cursor, limit + 1);
      const data = found.slice(0, limit).map(bodyOf);
      return { status: 200, body: { data, nextCursor: found.length > limit ? (data.at(-1)?.name ?? null) : null } };
    },
  });

  const weigh = route({
    method: "PATCH",
    path: "/v1/tenants/:name",
    summary: "Give a tenant a larger or smaller share",
    detail:
      "Within a lane tenants take turns. One of weight 3 has three turns where one of weight 1 has one, as long as both have something " +
      "to send. For the default tenant's administrators.",
    tag,
    scope: "admin",
    params: strict({ name: TenantName }),
    body: strict({ weight: Weight }),
    answers: { 200: { description: "The tenant", schema: TenantBody } },
    handle: async ({ params: { name }, body: { weight }, actor }) => ({
      status: 200,
      body: bodyOf(orThrow(await weighTenant({ pool }, actor, name, weight))),
    }),
  });

  return [list, weigh];
}

const bodyOf = ({ name, weight, createdAt }: TenantRow) => ({ name, weight, createdAt: createdAt.toISOString() });
