// The providers of this deployment, and those that tenants brought themselves.

import { join } from "node:path";
import type { NewItem } from "../domain/inbox.ts";
import type { Channel } from "../domain/notification.ts";
import type { Message, Provider } from "./channel.ts";
import { consoleProvider } from "./console.ts";
import { devProvider } from "./dev.ts";
import { sendgridProvider } from "./email-sendgrid.ts";
import { sesProvider } from "./email-ses.ts";
import { smtpProvider } from "./email-smtp.ts";
import { fileProvider } from "./file.ts";
import { createGuardedHttp } from "./guarded.ts";
import { inboxProvider } from "./inbox.ts";
import { apnsProvider } from "./push-apns.ts";
import { fcmProvider } from "./push-fcm.ts";
import { webPushProvider } from "./push-web.ts";
import type { Settings } from "./settings.ts";
import { slackProvider } from "./slack.ts";
import { twilioProvider } from "./sms-twilio.ts";
import { testProvider } from "./test.ts";
import { webhookProvider } from "./webhook.ts";

export type Routes = { readonly [channel in Channel]: string | readonly string[] };

export type ProvidersOptions = {
  providers: { readonly [name: string]: Settings };
  routes: Routes;
  /** Where the provider `file` writes unless told otherwise. */
  home: string;
  /** Addresses that tenant-given URLs may lead to although they are not public. */
  allow: readonly string[];
  print: (line: string) => void;
  keep: (message: Message) => Promise<void>;
  /** Stores items of inboxes. */
  store: (items: NewItem[]) => Promise<void>;
  now: () => number;
};

export type Named = { name: string; type: Settings["type"]; provider: Provider; isOwn: boolean };

export type Providers = {
  /** Who carries a channel for a tenant, in order of preference. */
  route(channel: string, tenant: number): readonly Provider[];
  find(name: string, tenant: number): Provider | undefined;
  list(tenant: number): Named[];
  /** Puts tenants' own accounts in the place of those before. What has not changed goes on with its connections. */
  setOwn(accounts: readonly { tenant: number; provider: string; settings: Settings }[]): void;
  close(): Promise<void>;
};

type Opened = { settings: Settings; said: string; provider: Provider };

export function openProviders(options: ProvidersOptions): Providers {
  const { providers, routes } = options;
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
    list: (tenant) =>
      [...shared.keys()].flatMap((name) => {
        const opened = find(name, tenant);
        return opened
          ? [{ name, type: opened.settings.type, provider: opened.provider, isOwn: own.has(`${tenant} ${name}`) }]
          : [];
      }),
    setOwn(accounts) {
      const before = own;
      own = new Map(
        accounts.map(({ tenant, provider, settings }) => {
          const key = `${tenant} ${provider}`;
          const known = before.get(key);
          return [key, known?.said === JSON.stringify(settings) ? known : open(provider, settings, options)];
        }),
      );
      ways.clear();
      for (const [key, opened] of before) if (own.get(key) !== opened) void retire(opened);
    },
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
  return { settings, said: JSON.stringify(settings), provider: { ...make(settings, options), name } };
}

function make(settings: Settings, { home, allow, print, keep, store, now }: ProvidersOptions): Provider {
  switch (settings.type) {
    case "console":
      return consoleProvider(print);
    case "dev":
      return devProvider({ keep, print });
    case "file":
      return fileProvider(settings.path ?? join(home, "outbox.jsonl"));
    case "inbox":
      return inboxProvider(store);
    case "smtp":
      return smtpProvider(settings);
    case "sendgrid":
      return sendgridProvider(settings, { now });
    case "ses":
      return sesProvider(settings, { now });
    case "fcm":
      return fcmProvider(settings, { now });
    case "apns":
      return apnsProvider(settings, { now });
    case "webpush": {
      const http = createGuardedHttp({ allow });
      return { ...webPushProvider(settings, { http, now }), close: http.close };
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
