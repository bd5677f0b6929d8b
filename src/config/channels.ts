// The part of the configuration that says who carries what: providers and routes.

import type { Routes } from "#channels/providers.ts";
import { faultsOfSettings, type Settings, withEnvironment } from "#channels/settings.ts";
import { CHANNELS } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { readSecretKeys, type SecretKeys } from "#domain/sealed.ts";
import { misfit, NOT_SHOWN, shortly } from "./fault.ts";
import { type Environment, readList, readObject, type SettingsOf } from "./setting.ts";

export type ProviderSettings = { readonly [name: string]: Settings };

export type ChannelsConfig = {
  providers: ProviderSettings;
  /** The providers that carry each channel, in order of preference. */
  routes: Routes;
  /** Where tenant-given URLs may lead besides public addresses. */
  allowAddresses: readonly string[];
  /** Seal tenants' credentials; the first seals, all open. */
  secretKeys: SecretKeys;
};

/** Always there, so that a first start needs no configuration. */
export const BUILT_IN: ProviderSettings = {
  console: { type: "console" },
  dev: { type: "dev" },
  file: { type: "file" },
  inbox: { type: "inbox" },
  webhook: { type: "webhook" },
};

// Until a provider is set up for it, a channel keeps what would have gone out. Webhooks and inboxes need no account.
export const DEFAULT_ROUTES: Routes = {
  ...(Object.fromEntries(CHANNELS.map((channel) => [channel, "dev"])) as Routes),
  console: "console",
  file: "file",
  inbox: "inbox",
  webhook: "webhook",
};

export const CHANNEL_SETTINGS: SettingsOf<ChannelsConfig> = {
  // Checked more closely by resolveProviders(), which knows the environment.
  providers: {
    env: "CARILLON_PROVIDERS",
    expected: "an object of providers, each with a type",
    fallback: BUILT_IN,
    isSecret: true,
    read(given) {
      const providers = readObject(given);
      return providers && ({ ...BUILT_IN, ...providers } as ProviderSettings);
    },
  },
  // Checked more closely by routeFaults(), which knows the providers.
  routes: {
    env: "CARILLON_ROUTES",
    expected: "an object from channels to names of providers, or lists of them",
    fallback: DEFAULT_ROUTES,
    read(given) {
      const routes = readObject(given);
      return routes && ({ ...DEFAULT_ROUTES, ...routes } as Routes);
    },
  },
  allowAddresses: {
    env: "CARILLON_ALLOW_ADDRESSES",
    expected: "host names, addresses or CIDRs with commas between them",
    fallback: [],
    read(given) {
      const list = readList(given);
      return list?.every(isAddress) ? Object.freeze([...list]) : undefined;
    },
  },
  secretKeys: {
    env: "CARILLON_SECRET_KEYS",
    expected: "one or several keys of 32 bytes in base64, with commas between them",
    fallback: [],
    isSecret: true,
    read: (given) => (typeof given === "string" ? readSecretKeys(given) : undefined),
  },
};

const isAddress = (one: unknown): one is string => typeof one === "string" && /^[\w.:/[\]-]+$/.test(one);

/** The providers with variables of the environment filled in, and every fault. Values are never shown: most are secrets. */
export function resolveProviders(
  providers: ProviderSettings,
  routes: Routes,
  env: Environment,
): { providers: ProviderSettings; faults: Fault[] } {
  const faults: Fault[] = [];
  const resolved: { [name: string]: Settings } = {};
  for (const [name, given] of Object.entries(providers)) {
    const path = `providers.${name}`;
    const missing: string[] = [];
    const settings = withEnvironment(given, env, missing);
    for (const variable of missing) {
      faults.push(misfit(path, `the environment variable ${variable}`, "none"));
    }
    if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name)) {
      faults.push(misfit(path, "a name of lower-case letters, digits, - and _", shortly(name)));
    }
    if (missing.length === 0) {
      for (const fault of faultsOfSettings(settings)) {
        faults.push(inWords(path + fault.path.replaceAll("/", "."), fault.message));
      }
    }
    resolved[name] = settings as Settings;
  }
  faults.push(...routeFaults(routes, providers));
  return { providers: Object.freeze(resolved), faults };
}

function routeFaults(routes: Routes, providers: ProviderSettings): Fault[] {
  const faults: Fault[] = [];
  for (const [channel, names] of Object.entries<unknown>(routes)) {
    const path = `routes.${channel}`;
    if (!CHANNELS.some((known) => known === channel)) {
      faults.push(misfit(path, `a channel, one of ${CHANNELS.join(", ")}`, "another"));
      continue;
    }
    const list: unknown[] = Array.isArray(names) ? names : [names];
    if (list.length === 0) faults.push(misfit(path, "the name of a provider", "none"));
    for (const name of list) {
      if (typeof name === "string" && Object.hasOwn(providers, name)) continue;
      faults.push(misfit(path, "the name of a provider", shortly(name)));
    }
  }
  return faults;
}

/** A fault of a schema, as the configuration words them. */
export function inWords(path: string, message: string): Fault {
  if (message === "is required") return misfit(path, "a value", "none");
  if (message === "is not a known field") return misfit(path, "a known setting", "an unknown one");
  return misfit(path, message.replace(/^must be /, ""), NOT_SHOWN);
}
