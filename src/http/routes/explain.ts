// /v1/explain: every decision about a notification, and the bytes that would go out. Nothing is stored or sent.

import { Type } from "typebox";
import type { Providers } from "#channels/providers.ts";
import { NotificationRequest } from "#domain/notification.ts";
import { type Fault, invalid } from "#domain/problems.ts";
import { policyOf, type RetryPolicy } from "#domain/retry.ts";
import { faultsOfRequest } from "#domain/validate.ts";
import { useOf } from "#guards/limit/use.ts";
import { wayOf } from "#guards/receivers.ts";
import { type Route, route } from "#http/core/route.ts";
import { readBreakersOf } from "#store/breakers.ts";
import type { Queryable } from "#store/connection/database.ts";
import { activeDevicesOf, devicesNamed } from "#store/devices.ts";
import { findSuppressed } from "#store/suppressions.ts";
import type { Templates } from "#templates/load.ts";
import { told } from "#templates/template.ts";

export type ExplainOptions = {
  db: Queryable;
  providers: Providers;
  templates: Templates;
  retry: RetryPolicy;
  now: () => Date;
};

export function explainRoutes({ db, providers, templates, retry, now }: ExplainOptions): Route[] {
  const explain = route({
    method: "POST",
    path: "/v1/explain",
    summary: "What would become of a notification",
    detail: "The same body as a send. Answers with every decision and the rendered content; stores and sends nothing.",
    tag: "Notifications",
    scope: "send",
    body: NotificationRequest,
    isBodyCheckedLater: true,
    answers: { 200: { description: "The decisions", schema: Type.Record(Type.String(), Type.Unknown()) } },
    async handle({ body, actor: { tenant } }) {
      const at = now();
      const faults = faultsOfRequest(body, at);
      if (faults.length > 0) throw invalid(faults);
      const request = body as NotificationRequest;
      const rendered = await templates.render(tenant, request);
      const shown = "error" in rendered ? request : rendered.request;
      const dueAt = request.scheduledFor === undefined ? at : new Date(request.scheduledFor);
      return {
        status: 200,
        body: {
          wouldSend: !("error" in rendered) && (await suppressionOf(tenant, shown)) === undefined,
          priority: request.priority ?? "normal",
          dueAt: (dueAt > at ? dueAt : at).toISOString(),
          ...(request.expiresAt !== undefined && { expiresAt: new Date(request.expiresAt).toISOString() }),
          suppressed: (await suppressionOf(tenant, shown)) ?? false,
          ...("error" in rendered ? { templateError: told(rendered.error) } : { content: shown.content }),
          route: await routeOf(tenant, shown),
          ...(shown.channel === "push" && { devices: await devicesOf(tenant, shown) }),
          retryPolicy: policyOf({ request }, retry),
          onAmbiguous: request.onAmbiguous ?? "resend",
        },
      };
    },
  });

  async function suppressionOf(tenant: number, request: NotificationRequest): Promise<string | undefined> {
    const { channel, recipient = {} } = request;
    const address = channel === "email" ? recipient.email : channel === "sms" ? recipient.phone : undefined;
    if (address === undefined) return undefined;
    const [why] = (await findSuppressed(db, [{ tenant, address }])).values();
    return why;
  }

  /** As the guards stand now; who comes later may meet others. */
  async function routeOf(tenant: number, request: NotificationRequest) {
    const { limits, accountOf } = providers;
    const route = providers.route(request.channel, tenant);
    const ways = new Map(route.map((provider) => [provider, wayOf(provider, { tenant, request }, accountOf).account]));
    const breakers = await readBreakersOf(db, [...ways.values()], tenant);
    return route.map((provider) => {
      const { name, capabilities } = provider;
      const faults: Fault[] = provider.validate?.(request) ?? [];
      return {
        provider: name,
        accepts: faults.length === 0,
        ...(faults.length > 0 && { faults }),
        breaker: breakers.get(ways.get(provider) ?? "")?.state ?? "closed",
        limits: [
          ...useOf(limits.providers[name]?.account),
          ...useOf(limits.providers[name]?.recipient),
          ...useOf(limits.tenant),
          ...useOf(limits.recipient),
        ],
        capabilities,
      };
    });
  }

  async function devicesOf(tenant: number, { recipient = {} }: NotificationRequest) {
    const { deviceTokens, userId = "" } = recipient;
    const devices = deviceTokens
      ? [
          ...(
            await devicesNamed(
              db,
              deviceTokens.map((token) => ({ tenant, token })),
            )
          ).values(),
        ]
      : ((await activeDevicesOf(db, [{ tenant, userId }])).get(`${tenant} ${userId}`) ?? []);
    return devices.map(({ token, platform }) => ({ token, platform }));
  }

  return [explain];
}
