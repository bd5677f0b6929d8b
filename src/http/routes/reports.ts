// POST /v1/providers/:name/events: the door for what providers report.

import { Type } from "typebox";
import type { Providers } from "#channels/providers.ts";
import { strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { type Route, route } from "#http/core/route.ts";
import { ProviderName } from "#http/core/schemas.ts";
import { takeReports } from "#steps/walk/report.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findTenant } from "#store/tenants.ts";
import type { Traces } from "#telemetry/traces/traces.ts";

const REPORT_BYTES = 2 * 1024 * 1024;

export type ReportOptions = {
  db: Queryable;
  providers: Pick<Providers, "find">;
  /** Where providers reach us; without it, what the request says. */
  publicUrl: string | undefined;
  traces?: Traces | undefined;
};

export function reportRoutes({ db, providers, publicUrl, traces }: ReportOptions): Route[] {
  const events = route({
    method: "POST",
    path: "/v1/providers/:name/events",
    summary: "Where a provider reports delivery, bounces and complaints",
    detail:
      "Verified by the provider's own signature. With `?tenant=` the signature of that tenant's own account counts, for what was sent with that account. " +
      "Reports may come twice and in any order.",
    tag: "Providers",
    params: strict({ name: ProviderName }),
    query: Type.Object({ tenant: Type.Optional(Type.String({ maxLength: 63 })) }, { additionalProperties: true }),
    turn: "small",
    isRaw: true,
    bodyLimit: REPORT_BYTES,
    answers: {
      200: { description: "Kept", schema: Type.Object({ received: Type.Integer() }) },
      401: { description: "The signature does not hold" },
    },
    async handle({ params: { name }, query, body, header, url }) {
      const tenant = query.tenant === undefined ? 0 : await findTenant(db, query.tenant);
      const provider = tenant === undefined ? undefined : providers.find(name, tenant);
      if (!provider) throw new Problem("NOT_FOUND", `there is no provider ${name}`);
      // SendGrid's webhookPublicKey, the topicArns of SES: without them nothing it says could be believed.
      if (!provider.report) throw new Problem("NOT_FOUND", `${name} is not set up to report; see its settings`);
      const base = publicUrl ?? `${header("x-forwarded-proto") ?? "http"}://${header("host") ?? "localhost"}`;
      const reports = await provider.report({ url: base + url, header, body: body as Buffer });
      if (!reports) throw new Problem("BAD_SIGNATURE", "the report was not signed by the provider, or too long ago");
      // Without an account of its own a tenant's sends, and their reports, are the deployment's.
      const actor = { kind: "provider", provider: name, owner: provider.owner ?? 0 } as const;
      const received = await takeReports(db, actor, reports, traces);
      return { status: 200, body: { received } };
    },
  });

  return [events];
}
