// The providers of this deployment, and those that tenants brought themselves.

import { join } from "node:path";
import { consoleProvider } from "#channels/dev/console.ts";
import { createKeeping, devProvider, type Kept } from "#channels/dev/dev.ts";
import type { TakeFault } from "#channels/dev/faults.ts";
import { fileProvider } from "#channels/dev/file.ts";
import { testProvider } from "#channels/dev/test.ts";
import { createWire } from "#channels/dev/wire.ts";
import { sendgridProvider } from "#channels/email/sendgrid.ts";
import { sesProvider } from "#channels/email/ses.ts";
import { smtpProvider } from "#channels/email/smtp.ts";
import { inboxProvider } from "#channels/inbox/inbox.ts";
import { apnsProvider } from "#channels/push/apns.ts";
import { fcmProvider } from "#channels/push/fcm.ts";
import { webPushProvider } from "#channels/push/web.ts";
import { slackProvider } from "#channels/slack/slack.ts";
import { twilioProvider } from "#channels/sms/twilio.ts";
import { webhookProvider } from "#channels/webhook/webhook.ts";
import { redactor } from "#domain/exchange.ts";
import type { NewItem } from "#domain/inbox.ts";
import type { Channel } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { type Limits, NO_LIMITS } from "#guards/limit/limited.ts";
import { BadSettings, inWords } from "#wire/bad-settings.ts";
import { createPublicLookup } from "#wire/public-lookup.ts";
import { createPublicHttp } from "#wire/public-only.ts";
import type { Provider } from "./channel.ts";
import { disabledProvider } from "./disabled.ts";
import { ownFaults, type Settings } from "./settings.ts";

export type Routes = { readonly [channel in Channel]: string | readonly string[] };

export type ProvidersOptions = {
  providers: { readonly [name: string]: Settings };
  routes: Routes;
  /** Where the provider `file` writes unless told otherwise. */
  home: string;
  /** Addresses that tenant-given URLs may lead to although they are not public. */
  allow: readonly string[];
  /** How much may be sent through them. */
  limits?: Limits;
  print: (line: string) => void;
  /** Keeps in the mailbox what `dev` does not send: all of them, or none. */
  keep: (messages: readonly Kept[]) => Promise<void>;
  /** In development: whether a send by `dev` is to fail, and how. */
  takeFault?: TakeFault | undefined;
  /** Stores items of inboxes. */
  store: (items: readonly NewItem[]) => Promise<void>;
  /** The true time: those who check signatures and tokens go by it. */
  now: () => number;
  /** Ours, by which messages expire. */
  clock: () => number;
};

export type Named = { name: string; type: Settings["type"]; provider: Provider; isOwn: boolean };

export type Providers = {
  /** Who carries a channel for a tenant, in order of preference. */
  route(channel: string, tenant: number): readonly Provider[];
  find(name: string, tenant: number): Provider | undefined;
  /** Whose account it uses: the provider's name, with `@` and the tenant's number if it is the tenant's own. */
  accountOf(provider: Pick<Provider, "name" | "owner">): string;
  list(tenant: number): Named[];
  limits: Limits;
  /** What is wrong with settings that a tenant brings, found by opening a provider with them; it is closed again. */
  tryOwn(settings: Settings): Promise<Fault[]>;
  /**
   * Puts tenants' own accounts in the place of those before. What has not changed goes on with its connections. One that cannot be
   * opened is disabled, alone; answers with those that were not so before.
   */
  setOwn(accounts: readonly OwnAccount[]): Disabled[];
  /** How many of tenants' own accounts cannot be opened. */
  disabledCount(): number;
  close(): Promise<void>;
};

/** Without settings: no secret key opens them. */
export type OwnAccount = { tenant: number; provider: string; settings: Settings | undefined };
export type Disabled = { tenant: number; provider: string; reason: string };

type Opened = { type: Settings["type"]; said: string; provider: Provider; disabled?: string };

export function openProviders(options: ProvidersOptions): Providers {
  const { providers, routes, limits = NO_LIMITS } = options;
  const shared = new Map<string, Opened>();
  for (const [name, settings] of Object.entries(providers)) shared.set(name, open(name, settings, options));
  let own = new Map<string, Opened>();
  const ways = new Map<string, readonly Provider[]>();

  const find = (name: string, tenant: number) => own.get(`${tenant} ${name}`) ?? shared.get(name);
  const names = (channel: string): readonly string[] => {
    const named = Object.hasOwn(routes, channel) ? routes[channel as Channel] : [];
    return typeof named === "string" ? [named] : named;
  };

  return {
    route(channel, tenant) {
      // Tenants without accounts of their own share one list per channel.
      const key = own.size === 0 ? channel : `${tenant} ${channel}`;
      let way = ways.get(key);
      if (!way) {
        way = names(channel).flatMap((name) => find(name, tenant)?.provider ?? []);
        ways.set(key, way);
      }
      return way;
    },
    find: (name, tenant) => find(name, tenant)?.provider,
    limits,
    accountOf: ({ name, owner }) => (owner === undefined ? name : `${name}@${owner}`),
    list: (tenant) =>
      [...shared.keys()].flatMap((name) => {
        const opened = find(name, tenant);
        return opened
          ? [{ name, type: opened.type, provider: opened.provider, isOwn: own.has(`${tenant} ${name}`) }]
          : [];
      }),
    async tryOwn(settings) {
      const tried = tryToMake(settings, options);
      if (Array.isArray(tried)) return tried;
      await tried.close?.();
      return [];
    },
    setOwn(given) {
      const before = own;
      own = new Map();
      const disabled: Disabled[] = [];
      for (const account of given) {
        const { tenant, provider } = account;
        const ours = shared.get(provider);
        // What the deployment no longer has, nobody is routed to.
        if (!ours) continue;
        const key = `${tenant} ${provider}`;
        const known = before.get(key);
        const isKnown = known?.said === JSON.stringify(account.settings ?? null);
        const opened = isKnown ? known : openOwn(account, ours, options);
        own.set(key, opened);
        if (opened.disabled !== undefined && !isKnown) disabled.push({ tenant, provider, reason: opened.disabled });
      }
      ways.clear();
      for (const [key, opened] of before) if (own.get(key) !== opened) retire(opened);
      return disabled;
    },
    disabledCount: () => [...own.values()].filter(({ disabled }) => disabled !== undefined).length,
    async close() {
      await Promise.all([...shared.values(), ...own.values()].map(({ provider }) => provider.close?.()));
    },
  };
}

const RETIRE_MS = 60_000;

/** Sends under way may still use it. */
function retire({ provider }: Opened): void {
  setTimeout(() => void provider.close?.().catch(() => undefined), RETIRE_MS).unref();
}

function open(name: string, settings: Settings, options: ProvidersOptions): Opened {
  return {
    type: settings.type,
    said: JSON.stringify(settings),
    provider: named(make(settings, options, name), settings, { name }),
  };
}

const named = (
  provider: Provider,
  settings: Settings | undefined,
  who: Pick<Provider, "name" | "owner">,
): Provider => ({
  ...provider,
  ...who,
  redact: redactor(settings),
});

/** A tenant's account as its sends meet it, whether it can be opened or not. `ours` is the deployment's. */
function openOwn(
  { tenant: owner, provider: name, settings }: OwnAccount,
  ours: Opened,
  options: ProvidersOptions,
): Opened {
  const said = JSON.stringify(settings ?? null);
  const type = settings?.type ?? ours.type;
  const tried = settings === undefined ? LOCKED : tryToMake(settings, options);
  if (!Array.isArray(tried)) return { type, said, provider: named(tried, settings, { name, owner }) };
  const disabled = tried.map(inWords).join("; ");
  const provider = disabledProvider(ours.provider, { isSealed: settings === undefined, reason: disabled });
  return { type, said, provider: { ...provider, name, owner }, disabled };
}

const LOCKED: Fault[] = [{ path: "", message: "no secret key opens its credentials" }];

/** Also what was stored long ago must pass today's rules. */
function tryToMake(settings: Settings, options: ProvidersOptions): Provider | Fault[] {
  const faults = ownFaults(settings);
  if (faults.length > 0) return faults;
  try {
    if (settings.type === "smtp")
      return smtpProvider(settings, { now: options.now, lookup: createPublicLookup({ allow: options.allow }) });
    return make(settings, options);
  } catch (error) {
    // Whatever else it says may repeat a secret.
    return error instanceof BadSettings ? [...error.faults] : [{ path: "", message: "the settings are not valid" }];
  }
}

function make(settings: Settings, options: ProvidersOptions, name = ""): Provider {
  const { home, allow, print, store, now, clock } = options;
  switch (settings.type) {
    case "console":
      return consoleProvider(print);
    case "dev":
      return makeDev(options, name);
    case "file":
      return fileProvider(settings.path ?? join(home, "outbox.jsonl"));
    case "inbox":
      return inboxProvider(store);
    case "smtp":
      return smtpProvider(settings, { now });
    case "sendgrid":
      return sendgridProvider(settings, { now });
    case "ses":
      return sesProvider(settings, { now, allow });
    case "fcm":
      return fcmProvider(settings, { now, clock });
    case "apns":
      return apnsProvider(settings, { now });
    case "webpush": {
      const http = createPublicHttp({ allow });
      return { ...webPushProvider(settings, { http, now, clock }), close: http.close };
    }
    case "twilio":
      return twilioProvider(settings, { now });
    case "slack":
      return slackProvider({ ...settings, allow: [...allow], now });
    case "webhook":
      return webhookProvider({ ...settings, allow: [...allow], now });
    case "test":
      return testProvider(settings);
  }
}

function makeDev({ providers, keep, takeFault, print, now, clock }: ProvidersOptions, name: string): Provider {
  const keeping = createKeeping(keep);
  const wireOf = createWire({ settings: Object.values(providers), now, clock });
  return { ...devProvider({ name, takeFault, keeping, wireOf, print }), close: keeping.idle };
}
