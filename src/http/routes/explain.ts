// /v1/explain: every decision about a notification, and the bytes that would go out. Nothing is stored or sent.

import { Type } from "typebox";
import { Instant, NotificationRequest, oneOf } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import { RESENDS } from "#domain/retry.ts";
import { stretchMs } from "#domain/retry-policy.ts";
import { STATUSES } from "#domain/status.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { type Candidate, type Explained, type ExplainWorld, explain } from "#steps/walk/explain.ts";

const text = Type.String();
const maybe = Type.Optional;
const Fields = Type.Record(text, Type.Unknown());
const Faults = Type.Array(Type.Object({ path: text, message: text }));
const ExplanationBody = Type.Object({
  wouldSend: Type.Boolean(),
  priority: oneOf(PRIORITIES),
  dueAt: Instant,
  expiresAt: maybe(Instant),
  suppressed: Type.Union([Type.Literal(false), oneOf(["bounce", "complaint", "manual"])]),
  content: maybe(Fields),
  templateError: maybe(text),
  outcome: Type.Object({ kind: text, reason: maybe(text) }),
  status: oneOf(STATUSES),
  provider: maybe(text),
  passedOver: maybe(Type.Array(Type.Unknown())),
  wire: Type.Array(
    Type.Object(
      { provider: text, device: maybe(text), bytes: Type.Integer(), body: text },
      { additionalProperties: true },
    ),
  ),
  route: Type.Array(
    Type.Object({
      provider: text,
      accepts: Type.Boolean(),
      faults: maybe(Faults),
      breaker: oneOf(["closed", "half-open", "open"]),
      limits: Type.Array(Fields),
      capabilities: Fields,
    }),
  ),
  devices: maybe(Type.Array(Type.Object({ token: text, platform: text }))),
  retryPolicy: Fields,
  retriedFor: Type.Object({ leastMs: Type.Number(), mostMs: Type.Number() }),
  onAmbiguous: text,
  resends: Type.Integer(),
});

export function explainRoutes(world: ExplainWorld): Route[] {
  const ask = route({
    method: "POST",
    path: "/v1/explain",
    summary: "What would become of a notification",
    detail:
      "The same body as a send. Answers with every decision and the rendered content; stores and sends nothing. `outcome` is what the " +
      "first attempt would come to as the guards stand now, if the provider that is asked takes it, `status` what follows from it, and " +
      "`wire` what would be sent, by whom. `retryPolicy` is the one that holds, `retriedFor` how long it would be tried at the least and at " +
      "the most, and `resends` how often it would be sent again though it may have been sent.",
    tag: "Notifications",
    scope: "send",
    body: NotificationRequest,
    isBodyCheckedLater: true,
    answers: { 200: { description: "The decisions", schema: ExplanationBody } },
    handle: async ({ body, actor }) => ({ status: 200, body: bodyOf(orThrow(await explain(world, actor, body))) }),
  });
  return [ask];
}

function bodyOf({ request, result, settlement, ...explained }: Explained) {
  const { dueAt, templateError, suppressed, devices, wire, route, retryPolicy } = explained;
  const { onAmbiguous = "resend" } = request;
  const { outcome, provider, passedOver = [] } = result;
  const { kind, ...more } = outcome;
  return {
    wouldSend: ["sent", "pending", "queued"].includes(settlement.to),
    priority: request.priority ?? "normal",
    dueAt: dueAt.toISOString(),
    ...(request.expiresAt !== undefined && { expiresAt: new Date(request.expiresAt).toISOString() }),
    suppressed: suppressed ?? false,
    ...(templateError === undefined ? { content: request.content } : { templateError }),
    outcome: { kind, ...more },
    status: settlement.to,
    ...(provider && { provider: provider.name }),
    ...(passedOver.length > 0 && { passedOver }),
    wire: wire.map(({ body, ...rest }) => ({ ...rest, bytes: Buffer.byteLength(body), body })),
    route: route.map(bodyOfCandidate),
    ...(devices && { devices: devices.map(({ token, platform }) => ({ token, platform })) }),
    retryPolicy,
    retriedFor: { leastMs: stretchMs(retryPolicy, 0), mostMs: stretchMs(retryPolicy, 1) },
    onAmbiguous,
    resends: onAmbiguous === "resend" ? RESENDS : 0,
  };
}

const bodyOfCandidate = ({ provider: { name, capabilities }, faults, breaker, limits }: Candidate) => ({
  provider: name,
  accepts: faults.length === 0,
  ...(faults.length > 0 && { faults }),
  breaker,
  limits,
  capabilities,
});
