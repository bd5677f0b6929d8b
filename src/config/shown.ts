// The configuration as it may be printed. What is not named here is only said to be set: a setting that is new, or that
// somebody filled with the wrong thing, is then hidden and not shown.

import type { Config } from "./read.ts";

const SET = "(set)";

/** Their form leaves no room for a secret: numbers, words of ours, names of channels, providers and hosts. */
const SHOWN = [
  "host",
  "port",
  "home",
  "roles",
  "drainMs",
  "processes",
  "logLevel",
  "traceParents",
  "databaseConnections",
  "acceptCommits",
  "acceptMaxWaiting",
  "batchSize",
  "concurrency",
  "callbackConcurrency",
  "leaseMs",
  "sweepMs",
  "pollMs",
  "maxAttempts",
  "sendTimeoutMs",
  "retentionDays",
  "feedDays",
  "routes",
  "limits",
  "limitsIn",
  "redisPrefix",
  "allowAddresses",
  "locks",
  "allowOrigins",
  "maxStreams",
  "streamsPerUser",
  "takes",
  "formerNames",
] as const satisfies (keyof Config)[];

export function shownConfig(config: Config): { [name: string]: unknown } {
  const shown: { [name: string]: unknown } = { database: shownDatabase(config.databaseUrl) };
  for (const [name, value] of Object.entries(config)) {
    if (name === "databaseUrl" || isUnset(value)) continue;
    shown[name] = SHOWN.some((known) => known === name) ? value : SET;
  }
  return {
    ...shown,
    providers: shownTypes(config.providers),
    sources: shownTypes(config.sources),
    sinks: shownTypes(config.sinks),
  };
}

const isUnset = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.length === 0);

/** Names, types, and which settings they have. */
function shownTypes(named: { readonly [name: string]: { type: string } }): { [name: string]: unknown } {
  const shown = Object.entries(named).map(([name, { type, ...rest }]) => [
    name,
    { type, ...Object.fromEntries(Object.keys(rest).map((setting) => [setting, SET])) },
  ]);
  return Object.fromEntries(shown);
}

/** Hosts, ports and the database's name. By hand, as a password may hold whatever a URL may not. */
function shownDatabase(url: string | undefined): string {
  if (url === undefined) return "embedded";
  const [place = ""] = url.replace(/^\w+:\/\//, "").split("?");
  const shown = place.slice(place.lastIndexOf("@") + 1);
  return /^([\w.-]+(:\d{1,5})?,?|\[[\da-f:.]+\](:\d{1,5})?,?)*(\/[\w.-]*)?$/i.test(shown) ? `postgres://${shown}` : SET;
}
