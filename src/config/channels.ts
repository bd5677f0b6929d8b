// The part of the configuration that says who carries what: providers and routes.

import type { Routes } from "#channels/providers.ts";
import { faultsOfSettings, type Settings, withEnvironment } from "#channels/settings.ts";
import { CHANNELS } from "#domain/notification.ts";
import { readSecretKeys, type SecretKeys } from "#domain/sealed.ts";
import { shortly } from "./file.ts";

export type ChannelFault = { key: string; expected: string; found: string };
type Environment = { [name: string]: string | undefined };
export type ProviderSettings = { readonly [name: string]: Settings };

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

const isObject = (given: unknown): given is { [name: string]: unknown } =>
  given !== null && typeof given === "object" && !Array.isArray(given);

/** An object, or the same as JSON in a variable. */
export function readObject(given: unknown): { [name: string]: unknown } | undefined {
  if (isObject(given)) return given;
  try {
    const value: unknown = JSON.parse(String(given));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Checked more closely by providerFaults(), which knows the environment. */
export function readProviders(given: unknown): ProviderSettings | undefined {
  const providers = readObject(given);
  return providers && ({ ...BUILT_IN, ...providers } as ProviderSettings);
}

/** Checked more closely by routeFaults(), which knows the providers. */
export function readRoutes(given: unknown): Routes | undefined {
  const routes = readObject(given);
  return routes && ({ ...DEFAULT_ROUTES, ...routes } as Routes);
}

/** Hosts, addresses and CIDRs: a list, or the same with commas. */
export function readAllow(given: unknown): readonly string[] | undefined {
  const list = typeof given === "string" ? given.split(",").map((one) => one.trim()) : given;
  const isGood = Array.isArray(list) && list.every((one) => typeof one === "string" && /^[\w.:/[\]-]+$/.test(one));
  return isGood ? Object.freeze([...list]) : undefined;
}

export function readKeys(given: unknown): SecretKeys | undefined {
  return typeof given === "string" ? readSecretKeys(given) : undefined;
}

/** The providers with variables of the environment filled in, and every fault. Values are never shown: most are secrets. */
export function resolveProviders(
  providers: ProviderSettings,
  routes: Routes,
  env: Environment,
): { providers: ProviderSettings; faults: ChannelFault[] } {
  const faults: ChannelFault[] = [];
  const resolved: { [name: string]: Settings } = {};
  for (const [name, given] of Object.entries(providers)) {
    const key = `providers.${name}`;
    const missing: string[] = [];
    const settings = withEnvironment(given, env, missing);
    for (const variable of missing) {
      faults.push({ key, expected: `the environment variable ${variable}`, found: "none" });
    }
    if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name)) {
      faults.push({ key, expected: "a name of lower-case letters, digits, - and _", found: shortly(name) });
    }
    if (missing.length === 0) {
      for (const { path, message } of faultsOfSettings(settings)) {
        faults.push({ key: key + path.replaceAll("/", "."), ...inWords(message) });
      }
    }
    resolved[name] = settings as Settings;
  }
  faults.push(...routeFaults(routes, providers));
  return { providers: Object.freeze(resolved), faults };
}

function routeFaults(routes: Routes, providers: ProviderSettings): ChannelFault[] {
  const faults: ChannelFault[] = [];
  for (const [channel, names] of Object.entries<unknown>(routes)) {
    const key = `routes.${channel}`;
    if (!CHANNELS.some((known) => known === channel)) {
      faults.push({ key, expected: `a channel, one of ${CHANNELS.join(", ")}`, found: "another" });
      continue;
    }
    const list: unknown[] = Array.isArray(names) ? names : [names];
    if (list.length === 0) faults.push({ key, expected: "the name of a provider", found: "none" });
    for (const name of list) {
      if (typeof name === "string" && Object.hasOwn(providers, name)) continue;
      faults.push({ key, expected: "the name of a provider", found: shortly(name) });
    }
  }
  return faults;
}

function inWords(message: string): { expected: string; found: string } {
  if (message === "is required") return { expected: "a value", found: "none" };
  if (message === "is not a known field") return { expected: "a known setting", found: "an unknown one" };
  return { expected: message.replace(/^must be /, ""), found: "something else (not shown)" };
}
