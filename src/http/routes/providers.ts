// /v1/providers: who carries what, how they are, what they cost; tenants' own accounts; and the door for their reports.

import { Type } from "typebox";
import type { Health, Provider } from "#channels/channel.ts";
import type { Providers } from "#channels/providers.ts";
import { OWN_TYPES, type Settings } from "#channels/settings.ts";
import { PERIODS } from "#domain/gcra.ts";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { invalid, Problem } from "#domain/problems.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import { accountKey, tenantKey } from "#guards/limit/limited.ts";
import { useOf } from "#guards/limit/use.ts";
import { receiversOf } from "#guards/receivers.ts";
import { type Route, route } from "#http/core/route.ts";
import type { RequestTurns } from "#http/core/turns.ts";
import { spendByProvider } from "#record/costs.ts";
import { keepAccount } from "#steps/manage/credentials.ts";
import { takeReports } from "#steps/walk/report.ts";
import { type BreakerRow, readBreakersOf } from "#store/breakers.ts";
import type { Queryable } from "#store/connection/database.ts";
import { deleteCredentials } from "#store/credentials.ts";
import { readLimits } from "#store/limits.ts";
import { findTenant } from "#store/tenants.ts";

const tag = "Providers";
const Name = Type.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,62}$", "x-expects": "a provider's name" });
const HEALTH_MS = 5_000;
const REMEMBER_MS = 30_000;
const SPEND_DAYS = 30;
const REPORT_BYTES = 2 * 1024 * 1024;

export type ProviderOptions = {
  db: Queryable;
  large: Queryable;
  turns: RequestTurns;
  providers: Providers;
  reload: () => Promise<void>;
  secretKeys: SecretKeys;
  /** Where providers reach us; without it, what the request says. */
  publicUrl: string | undefined;
  now: () => Date;
};

const LimitUse = Type.Object({
  per: oneOf(PERIODS),
  most: Type.Integer(),
  burst: Type.Integer(),
  /** How many could go at once, now. */
  room: Type.Optional(Type.Integer()),
  /** How long the last of those who wait has to wait. */
  waitMs: Type.Optional(Type.Integer()),
});
const breaker = {
  state: oneOf(["closed", "half-open", "open"]),
  openMs: Type.Optional(Type.Integer()),
  pausedMs: Type.Optional(Type.Integer()),
  reason: Type.Optional(Type.String()),
};
const ProviderBody = Type.Object({
  name: Name,
  type: Type.String(),
  channels: Type.Array(oneOf(CHANNELS)),
  routes: Type.Array(oneOf(CHANNELS)),
  own: Type.Boolean(),
  capabilities: Type.Record(Type.String(), Type.Unknown()),
  health: Type.Optional(Type.Object({ healthy: Type.Boolean(), detail: Type.String() })),
  breaker: Type.Object(breaker),
  /** Of the tenant's own URLs, those whose servers are in trouble. */
  receivers: Type.Optional(Type.Array(Type.Object({ origin: Type.String(), ...breaker }))),
  limits: Type.Object({ account: Type.Array(LimitUse), recipient: Type.Array(LimitUse) }),
  spend: Type.Object({ since: Instant, sent: Type.Integer(), cost: Type.Number() }),
});
const Account = Type.Object({ type: oneOf(OWN_TYPES) }, { additionalProperties: true });

export function providerRoutes(options: ProviderOptions): Route[] {
  const { db, large, turns, providers, reload, secretKeys, publicUrl, now } = options;
  const health = createHealth(now);
  const noSuch = (name: string) => new Problem("NOT_FOUND", `there is no provider ${name}`);

  const list = route({
    method: "GET",
    path: "/v1/providers",
    summary: "Providers, with capabilities, health, limits and spend",
    detail:
      "Health is asked at most every 30 s. Spend is an estimate of the tenant's last 30 days, in US dollars. " +
      "`receivers` are the servers behind the tenant's own URLs that are asked no more for now. " +
      "`room` is what a limit allows at once now, `waitMs` how long the last who waits has to wait; both are shared by all workers.",
    tag,
    scope: "read",
    // For the reading alone: a provider may take its time to say how it is.
    turn: "none",
    answers: {
      200: {
        description: "All of them",
        schema: Type.Object({
          data: Type.Array(ProviderBody),
          limits: Type.Object({ tenant: Type.Array(LimitUse), recipient: Type.Array(LimitUse) }),
        }),
      },
    },
    async handle({ actor: { tenant } }) {
      const since = new Date(now().getTime() - SPEND_DAYS * 86_400_000);
      const spent = await turns.large(tenant, () => spendByProvider(large, tenant, since));
      const spend = new Map(spent.map((line) => [line.provider, line]));
      const listed = providers.list(tenant);
      const { limits, accountOf } = providers;
      const accounts = listed.map(({ provider }) => accountOf(provider));
      const breakers = await readBreakersOf(db, accounts, tenant);
      const keys = [tenantKey(tenant), ...accounts.map(accountKey)];
      const states = new Map((await readLimits(db, keys)).map((state) => [state.key, state]));
      const data = await Promise.all(
        listed.map(async ({ name, type, provider, isOwn }) => {
          const found = await health.recall(provider);
          const { sent = 0, cost = 0 } = spend.get(name) ?? {};
          const routes = CHANNELS.filter((channel) => providers.route(channel, tenant).includes(provider));
          return {
            name,
            type,
            channels: provider.channels,
            routes,
            own: isOwn,
            capabilities: provider.capabilities,
            ...(found && { health: found }),
            breaker: bodyOfBreaker(breakers.get(accountOf(provider))),
            ...(provider.receiver && { receivers: receiversIn(breakers, receiversOf(name, tenant)) }),
            limits: {
              account: useOf(limits.providers[name]?.account, states.get(accountKey(accountOf(provider))) ?? "unused"),
              recipient: useOf(limits.providers[name]?.recipient),
            },
            spend: { since: since.toISOString(), sent, cost: Math.round(cost * 10_000) / 10_000 },
          };
        }),
      );
      const others = {
        tenant: useOf(limits.tenant, states.get(tenantKey(tenant)) ?? "unused"),
        recipient: useOf(limits.recipient),
      };
      return { status: 200, body: { data, limits: others } };
    },
  });

  const put = route({
    method: "PUT",
    path: "/v1/providers/:name",
    summary: "Use the tenant's own account with a provider",
    detail:
      "The settings are sealed with AES-256-GCM before they are stored, and never shown again. Routes stay the deployment's: " +
      "where they name this provider, the tenant's account is used.",
    tag,
    scope: "admin",
    params: strict({ name: Name }),
    body: Account,
    answers: { 204: { description: "Kept; other replicas use it within five seconds" } },
    async handle({ params: { name }, body, actor: { tenant } }) {
      if (secretKeys.length === 0) {
        throw new Problem("NOT_CONFIGURED", "set CARILLON_SECRET_KEYS to keep tenants' credentials");
      }
      if (!providers.find(name, tenant)) throw noSuch(name);
      const settings = body as Settings;
      const faults = await providers.tryOwn(settings);
      if (faults.length > 0) throw invalid(faults);
      await keepAccount(db, secretKeys, { tenant, provider: name, settings });
      await reload();
      return { status: 204 };
    },
  });

  const remove = route({
    method: "DELETE",
    path: "/v1/providers/:name",
    summary: "Go back to the deployment's account",
    tag,
    scope: "admin",
    params: strict({ name: Name }),
    answers: { 204: { description: "Forgotten" } },
    async handle({ params: { name }, actor: { tenant } }) {
      if (!(await deleteCredentials(db, tenant, name))) throw noSuch(name);
      await reload();
      return { status: 204 };
    },
  });

  const test = route({
    method: "POST",
    path: "/v1/providers/:name/test",
    summary: "Ask a provider whether it can be reached with these credentials; sends nothing",
    tag,
    scope: "admin",
    turn: "none",
    params: strict({ name: Name }),
    answers: {
      200: { description: "What it said", schema: Type.Object({ healthy: Type.Boolean(), detail: Type.String() }) },
    },
    async handle({ params: { name }, actor: { tenant } }) {
      const provider = providers.find(name, tenant);
      if (!provider) throw noSuch(name);
      const found = await health.ask(provider);
      return { status: 200, body: found ?? { healthy: true, detail: "there is nothing to check" } };
    },
  });

  const events = route({
    method: "POST",
    path: "/v1/providers/:name/events",
    summary: "Where a provider reports delivery, bounces and complaints",
    detail:
      "Verified by the provider's own signature. With `?tenant=` the signature of that tenant's own account counts, for what was sent with that account. " +
      "Reports may come twice and in any order.",
    tag,
    params: strict({ name: Name }),
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
      if (!provider) throw noSuch(name);
      // SendGrid's webhookPublicKey, the topicArns of SES: without them nothing it says could be believed.
      if (!provider.report) throw new Problem("NOT_FOUND", `${name} is not set up to report; see its settings`);
      const base = publicUrl ?? `${header("x-forwarded-proto") ?? "http"}://${header("host") ?? "localhost"}`;
      const reports = await provider.report({ url: base + url, header, body: body as Buffer });
      if (!reports) throw new Problem("BAD_SIGNATURE", "the report was not signed by the provider, or too long ago");
      // Without an account of its own a tenant's sends, and their reports, are the deployment's.
      const received = await takeReports(db, { provider: name, owner: provider.owner ?? 0 }, reports);
      return { status: 200, body: { received } };
    },
  });

  return [list, put, remove, test, events];
}

/** An open one whose time is over waits for somebody to probe. */
function bodyOfBreaker(row: BreakerRow | undefined) {
  if (!row) return { state: "closed" };
  const { openMs, pausedMs, reason } = row;
  const state = row.state === "open" && openMs === 0 ? "half-open" : row.state;
  return {
    state,
    ...(state === "open" && { openMs: Math.round(openMs) }),
    ...(pausedMs > 0 && { pausedMs: Math.round(pausedMs) }),
    ...(state !== "closed" && reason !== null && { reason }),
  };
}

/** Those in trouble, by origin. */
function receiversIn(breakers: ReadonlyMap<string, BreakerRow>, prefix: string) {
  return [...breakers.values()]
    .filter(({ account, state, pausedMs }) => account.startsWith(prefix) && (state !== "closed" || pausedMs > 0))
    .map((row) => ({ origin: row.account.slice(prefix.length), ...bodyOfBreaker(row) }));
}

async function askHealth(provider: Provider): Promise<Health | undefined> {
  return provider.check?.(AbortSignal.timeout(HEALTH_MS)).catch((error: unknown) => ({
    healthy: false,
    detail: error instanceof Error ? error.message : String(error),
  }));
}

type Asking = (provider: Provider) => Promise<Health | undefined>;

/** Asking a provider costs it and us a request: one at a time, which all who ask meanwhile share; and an answer is good for a while. */
function createHealth(now: () => Date): { ask: Asking; recall: Asking } {
  const underWay = new WeakMap<Provider, Promise<Health | undefined>>();
  const known = new WeakMap<Provider, { untilMs: number; health: Promise<Health | undefined> }>();
  const ask: Asking = (provider) => {
    const asked = underWay.get(provider) ?? askHealth(provider).finally(() => underWay.delete(provider));
    underWay.set(provider, asked);
    return asked;
  };
  return {
    ask,
    recall(provider) {
      const found = known.get(provider);
      if (found && found.untilMs > now().getTime()) return found.health;
      const health = ask(provider);
      known.set(provider, { untilMs: now().getTime() + REMEMBER_MS, health });
      return health;
    },
  };
}
