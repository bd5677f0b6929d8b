// What would become of a notification: the walk itself, with nothing at its end.
//
// It is prepared, guarded, rendered, routed and encoded by the very steps of a delivery. Limits are looked at and not taken from,
// providers say what they would send and are not asked to, nothing is settled.

import type { Encoded, Provider } from "#channels/channel.ts";
import type { Providers } from "#channels/providers.ts";
import type { KeyActor } from "#domain/actor.ts";
import type { Claimed, Ended } from "#domain/attempt.ts";
import type { Device } from "#domain/device.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { rankOf } from "#domain/priority.ts";
import { type Fault, invalid, type Problem } from "#domain/problems.ts";
import { policyOf, type RetryPolicy } from "#domain/retry-policy.ts";
import { faultsOfRequest } from "#domain/validate.ts";
import type { Limit } from "#guards/limit/limit.ts";
import { type Use, useOf } from "#guards/limit/use.ts";
import { createLook } from "#guards/look.ts";
import { createPauses, pausedGuard } from "#guards/pauses.ts";
import { wayOf } from "#guards/receivers.ts";
import { type BreakerRow, readBreakersOf } from "#store/breakers.ts";
import { readPaused } from "#store/pauses.ts";
import type { Suppression } from "#store/suppressions.ts";
import { told } from "#templates/template.ts";
import { createSingleflight } from "#timing/singleflight.ts";
import { end } from "./end.ts";
import { guard } from "./guard.ts";
import { type Prepared, prepare } from "./prepare.ts";
import { type Result, send } from "./send.ts";
import { Suppressions } from "./suppress.ts";
import type { World } from "./world.ts";

export type ExplainWorld = Pick<World, "db" | "templates" | "retry" | "facts" | "monotonic"> & {
  providers: Pick<Providers, "route" | "limits" | "accountOf">;
  limit: Pick<Limit, "look">;
  now: () => Date;
};

/** What would go over the wire, and by whom. */
export type Outgoing = Encoded & { provider: string; device?: string };

/** One provider of the route, as its guards stand now; who comes later may meet others. */
export type Candidate = {
  provider: Provider;
  faults: Fault[];
  breaker: BreakerRow["state"];
  limits: Use[];
};

export type Explained = {
  dueAt: Date;
  /** As it would be handed over: filled in, and without copies to those who must not get any. */
  request: NotificationRequest;
  templateError: string | undefined;
  suppressed: Suppression["why"] | undefined;
  devices: readonly Device[] | undefined;
  /** What the first attempt would come to if a provider that is asked takes it, and what would follow from that. */
  result: Result;
  settlement: Ended["settlement"];
  wire: Outgoing[];
  route: Candidate[];
  retryPolicy: RetryPolicy;
};

/** Nobody's: what is explained is not stored. */
const ID = "00000000-0000-0000-0000-000000000000";
const TIMEOUT_MS = 10_000;

export async function explain(world: ExplainWorld, { tenant }: KeyActor, value: unknown): Promise<Explained | Problem> {
  const { db, templates, retry, facts, monotonic, now } = world;
  const at = now();
  const faults = faultsOfRequest(value, at);
  if (faults.length > 0) return invalid(faults);
  const claimed = claimedOf(tenant, value as NotificationRequest, at, monotonic());
  const [prepared] = await prepare([claimed], { db, suppressions: new Suppressions(db, monotonic) });
  if (!prepared) throw new Error("nothing was prepared");
  const rendered = await templates.render(tenant, prepared.request);
  const request = "request" in rendered ? rendered.request : prepared.request;
  const breakers = await breakersOf(world, tenant, request);
  const wire: Outgoing[] = [];
  const result = await rehearse(world, prepared, rendered, breakers, wire);
  return {
    dueAt: new Date(claimed.lease.claimedAtMs),
    request,
    templateError: "error" in rendered ? told(rendered.error) : undefined,
    suppressed: prepared.suppression,
    devices: prepared.devices,
    result,
    settlement: (await end(prepared, result, 0, { db, retry, facts, random: () => 0 })).settlement,
    wire,
    route: candidatesOf(world, tenant, request, breakers),
    retryPolicy: policyOf(prepared, retry),
  };
}

/** As if it were claimed the moment it is due, with a lease that does not end. */
function claimedOf(tenant: number, request: NotificationRequest, at: Date, monotonic: number): Claimed {
  const { scheduledFor, expiresAt, priority = "normal" } = request;
  const dueMs = Math.max(at.getTime(), scheduledFor === undefined ? 0 : Date.parse(scheduledFor));
  const endsAt = Number.POSITIVE_INFINITY;
  return {
    seq: Number.MAX_SAFE_INTEGER,
    lease: { handle: undefined, meanBytes: 0, endsAt, claimedAtMs: dueMs, claimedAt: monotonic, answeredAt: monotonic },
    handle: undefined,
    tenant,
    id: ID,
    rank: rankOf[priority],
    number: 1,
    request,
    sinceMs: dueMs,
    expiresAtMs: expiresAt === undefined ? undefined : Date.parse(expiresAt),
  };
}

async function rehearse(
  { db, limit, providers, facts, monotonic }: ExplainWorld,
  prepared: Prepared,
  rendered: Awaited<ReturnType<ExplainWorld["templates"]["render"]>>,
  breakers: Breakers,
  wire: Outgoing[],
): Promise<Result> {
  const { accountOf, limits } = providers;
  const pauses = createPauses({
    read: () => readPaused(db),
    monotonic,
    onFailure: (error) => facts.pausesUnread(error),
  });
  await pauses.look();
  const world = {
    db,
    facts,
    monotonic,
    leaseMarginMs: 0,
    templates: { render: async () => rendered },
    providers: {
      route: (channel: string, tenant: number) =>
        providers.route(channel, tenant).map((provider) => rehearsing(provider, wire)),
    },
    guard: pausedGuard(createLook({ limit, accountOf, limits, breakers, monotonic }), pauses, accountOf),
    pauses,
    flights: createSingleflight<Result>(),
  };
  const startedAt = prepared.lease.claimedAt;
  const { signal } = new AbortController();
  const slot = { idempotencyKey: prepared.id, timeoutMs: TIMEOUT_MS, signal, startedAt, free: () => undefined };
  return guard(prepared, startedAt, world) ?? send(prepared, slot, world);
}

/** Stands in a provider's place and says what it would send. */
const rehearsing = (provider: Provider, wire: Outgoing[]): Provider => ({
  ...provider,
  async send(message) {
    const encoded = await provider.encode?.(message);
    if (!encoded) return { kind: "accepted" };
    // Nobody was asked: a device that is only spoken of is not given up.
    if ("kind" in encoded) return encoded.kind === "dead-recipient" ? { ...encoded, kind: "rejected" } : encoded;
    const { type, body } = encoded;
    wire.push({ provider: provider.name, ...(message.device && { device: message.device.token }), type, body });
    return { kind: "accepted" };
  },
});

type Breakers = ReadonlyMap<string, BreakerRow>;

const accountsOf = ({ providers }: ExplainWorld, tenant: number, request: NotificationRequest) =>
  providers
    .route(request.channel, tenant)
    .map((provider) => ({ provider, ...wayOf(provider, { tenant, request }, providers.accountOf) }));

const breakersOf = (world: ExplainWorld, tenant: number, request: NotificationRequest): Promise<Breakers> =>
  readBreakersOf(
    world.db,
    accountsOf(world, tenant, request).map(({ account }) => account),
    tenant,
  );

function candidatesOf(
  world: ExplainWorld,
  tenant: number,
  request: NotificationRequest,
  breakers: Breakers,
): Candidate[] {
  const { limits } = world.providers;
  return accountsOf(world, tenant, request).map(({ provider, account }) => {
    const own = limits.providers[provider.name];
    return {
      provider,
      faults: provider.validate?.(request) ?? [],
      breaker: breakers.get(account)?.state ?? "closed",
      limits: [own?.account, own?.recipient, limits.tenant, limits.recipient].flatMap((rates) => useOf(rates)),
    };
  });
}
