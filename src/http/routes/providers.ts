// /v1/providers: who carries what, how they are, what they cost.

import { Type } from "typebox";
import type { ProviderHealth } from "#channels/provider-health.ts";
import type { Named, Providers } from "#channels/providers.ts";
import { PERIODS } from "#domain/gcra.ts";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { Problem } from "#domain/problems.ts";
import { spansOf } from "#domain/spans.ts";
import type { Limit } from "#guards/limit/limit.ts";
import { accountKey, tenantKey } from "#guards/limit/limited.ts";
import { useOf } from "#guards/limit/use.ts";
import { receiversOf } from "#guards/receivers.ts";
import { type Route, route } from "#http/core/route.ts";
import { ProviderName } from "#http/core/schemas.ts";
import type { RequestTurns } from "#http/core/turns.ts";
import { readCosts } from "#record/costs.ts";
import { type BreakerRow, readBreakersOf } from "#store/breakers.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listPauses } from "#store/pauses.ts";
import { bodyOfPause, PauseBody } from "./pauses.ts";

const tag = "Providers";
const SPEND_DAYS = 30;

export type ProviderOptions = {
  db: Queryable;
  large: Queryable;
  turns: RequestTurns;
  providers: Providers;
  health: ProviderHealth;
  limit: Pick<Limit, "look">;
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
  name: ProviderName,
  type: Type.String(),
  channels: Type.Array(oneOf(CHANNELS)),
  routes: Type.Array(oneOf(CHANNELS)),
  own: Type.Boolean(),
  capabilities: Type.Record(Type.String(), Type.Unknown()),
  health: Type.Optional(Type.Object({ healthy: Type.Boolean(), detail: Type.String() })),
  breaker: Type.Object(breaker),
  paused: Type.Optional(PauseBody),
  /** Of the tenant's own URLs, those whose servers are in trouble. */
  receivers: Type.Optional(Type.Array(Type.Object({ origin: Type.String(), ...breaker }))),
  limits: Type.Object({ account: Type.Array(LimitUse), recipient: Type.Array(LimitUse) }),
  spend: Type.Object({ since: Instant, sent: Type.Integer(), cost: Type.Number() }),
});

export const providerRoutes = (options: ProviderOptions): Route[] => [list(options), test(options)];

const list = (options: ProviderOptions): Route =>
  route({
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
    handle: async ({ actor: { tenant } }) => ({ status: 200, body: await overview(options, tenant) }),
  });

async function overview({ db, large, turns, providers, health, limit, now }: ProviderOptions, tenant: number) {
  const until = now();
  const spans = spansOf({ since: new Date(until.getTime() - SPEND_DAYS * 86_400_000), until }, until);
  const spent = await turns.large(tenant, () => readCosts(large, tenant, "provider", spans));
  const spend = new Map(spent.map((line) => [line.key, line]));
  const listed = providers.list(tenant);
  const { limits, accountOf } = providers;
  const accounts = listed.map(({ provider }) => accountOf(provider));
  const breakers = await readBreakersOf(db, accounts, tenant);
  const paused = new Map((await listPauses(db)).map((pause) => [pause.account, pause]));
  const keys = [tenantKey(tenant), ...accounts.map(accountKey)];
  // Where they cannot be asked it is told what is set, and not what is used.
  const looked = await limit.look(keys).catch(() => undefined);
  const states = looked && new Map(looked.map((state) => [state.key, state]));
  const stateOf = (key: string) => states && (states.get(key) ?? "unused");
  const bodyOf = async ({ name, type, provider, isOwn }: Named) => {
    const found = await health.recall(provider);
    const account = accountOf(provider);
    const pause = paused.get(account);
    const { sent = 0, cost = 0 } = spend.get(name) ?? {};
    return {
      name,
      type,
      channels: provider.channels,
      routes: CHANNELS.filter((channel) => providers.route(channel, tenant).includes(provider)),
      own: isOwn,
      capabilities: provider.capabilities,
      ...(found && { health: found }),
      breaker: bodyOfBreaker(breakers.get(account)),
      ...(pause && { paused: bodyOfPause(pause) }),
      ...(provider.receiver && { receivers: receiversIn(breakers, receiversOf(name, tenant)) }),
      limits: {
        account: useOf(limits.providers[name]?.account, stateOf(accountKey(account))),
        recipient: useOf(limits.providers[name]?.recipient),
      },
      spend: { since: spans.since.toISOString(), sent, cost: Math.round(cost * 10_000) / 10_000 },
    };
  };
  return {
    data: await Promise.all(listed.map(bodyOf)),
    limits: {
      tenant: useOf(limits.tenant, stateOf(tenantKey(tenant))),
      recipient: useOf(limits.recipient),
    },
  };
}

const test = ({ providers, health }: Pick<ProviderOptions, "providers" | "health">): Route =>
  route({
    method: "POST",
    path: "/v1/providers/:name/test",
    summary: "Ask a provider whether it can be reached with these credentials; sends nothing",
    tag,
    scope: "admin",
    turn: "none",
    params: strict({ name: ProviderName }),
    answers: {
      200: { description: "What it said", schema: Type.Object({ healthy: Type.Boolean(), detail: Type.String() }) },
    },
    async handle({ params: { name }, actor: { tenant } }) {
      const provider = providers.find(name, tenant);
      if (!provider) throw new Problem("NOT_FOUND", `there is no provider ${name}`);
      const found = await health.ask(provider);
      return { status: 200, body: found ?? { healthy: true, detail: "there is nothing to check" } };
    },
  });

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
