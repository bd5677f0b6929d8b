// Configuration: the environment over a config file over defaults, read once into a frozen value.
//
// Every fault is found before anything starts, and all are reported together. Nothing else reads
// process.env.

import { resolve } from "node:path";

import type { Routes } from "#channels/providers.ts";
import type { Channel } from "#domain/notification.ts";
import { PRIORITIES, type Priority } from "#domain/priority.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import { type Limits, NO_LIMITS } from "#guards/limit/limited.ts";
import { serversOf } from "#store/connection/servers.ts";
import {
  BUILT_IN,
  DEFAULT_ROUTES,
  type ProviderSettings,
  readAllow,
  readKeys,
  readProviders,
  readRoutes,
  resolveProviders,
} from "./channels.ts";
import { type ConfigFault, NOT_SHOWN, readConfigFile, shortly } from "./file.ts";
import { DEFAULT_STREAMS_PER_USER, MAX_STREAMS, readOrigins } from "./inbox.ts";
import { readLimits, resolveLimits } from "./limits.ts";
import { LOCKS, type LockKind, type LockSettings, readLockedChannels, readLocks, resolveLocks } from "./locks.ts";

export const ROLES = ["api", "worker", "scheduler", "keeper", "stream"] as const;
export type Role = (typeof ROLES)[number];
const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

export type Config = Readonly<{
  host: string;
  port: number;
  /** Where the outside world reaches us, for signatures over URLs. */
  publicUrl: string | undefined;
  /** Undefined: an embedded PostgreSQL under `home`. */
  databaseUrl: string | undefined;
  /** PostgreSQL itself, when `databaseUrl` leads through a pooler that shares sessions. */
  databaseDirectUrl: string | undefined;
  home: string;
  roles: readonly Role[];
  apiKey: string | undefined;
  drainMs: number;
  logLevel: (typeof LOG_LEVELS)[number];
  /** Connections for small requests; everything else has its own. */
  databaseConnections: number;
  acceptLanes: number;
  acceptMaxWaiting: number;
  /** Notifications a worker claims at once, and sends at once. */
  batchSize: number;
  concurrency: number;
  leaseMs: number;
  sweepMs: number;
  pollMs: Readonly<{ [lane in Priority]: number }>;
  maxAttempts: number;
  sendTimeoutMs: number;
  retentionDays: number;
  providers: ProviderSettings;
  /** The providers that carry each channel, in order of preference. */
  routes: Routes;
  /** How much may be sent, by provider, tenant and recipient. */
  limits: Limits;
  /** Where tenant-given URLs may lead besides public addresses. */
  allowAddresses: readonly string[];
  locks: LockSettings;
  /** Seal tenants' credentials; the first seals, all open. */
  secretKeys: SecretKeys;
  /** Pages of these origins may read inboxes. */
  allowOrigins: readonly string[];
  /** Streams that one process, and one user in one process, may have open. */
  maxStreams: number;
  streamsPerUser: number;
}>;

export class ConfigError extends Error {
  readonly faults: readonly ConfigFault[];
  constructor(faults: readonly ConfigFault[]) {
    const lines = faults.map(({ key, expected, found }) => `  ${key}: expected ${expected}, found ${found}`);
    super(`the configuration has ${faults.length} fault${faults.length === 1 ? "" : "s"}:\n${lines.join("\n")}`);
    this.name = "ConfigError";
    this.faults = faults;
  }
}

type Setting<Value> = {
  env: string;
  expected: string;
  fallback: Value;
  isSecret?: boolean;
  /** Undefined when the given value will not do. */
  read: (given: unknown) => Value | undefined;
};

/** As it is written; what belongs together is put together once all of it is read. */
type Given = Omit<Config, "locks"> & { locks: LockKind | undefined; lockChannels: readonly Channel[] | undefined };

const SETTINGS: { [Name in keyof Given]: Setting<Given[Name]> } = {
  host: { env: "HOST", expected: "a host name or address", fallback: "127.0.0.1", read: readText(/^[\w.:-]+$/) },
  port: { env: "PORT", expected: "a port from 0 to 65535", fallback: 8420, read: readInteger(0, 65_535) },
  publicUrl: {
    env: "CARILLON_PUBLIC_URL",
    expected: "a URL like https://carillon.example.com",
    fallback: undefined,
    read: (given) => (typeof given === "string" && /^https?:\/\/\S+[^/]$/.test(given) ? given : undefined),
  },
  databaseUrl: {
    env: "DATABASE_URL",
    expected: "a URL like postgres://user:password@host:5432/database, with / ? # in a password as %2F %3F %23",
    fallback: undefined,
    isSecret: true,
    read: readDatabaseUrl,
  },
  databaseDirectUrl: {
    env: "CARILLON_DATABASE_DIRECT_URL",
    expected: "a URL like that of DATABASE_URL, past the pooler",
    fallback: undefined,
    isSecret: true,
    read: readDatabaseUrl,
  },
  home: { env: "CARILLON_HOME", expected: "a directory", fallback: ".carillon", read: readText(/./) },
  roles: { env: "CARILLON_ROLES", expected: `a list of ${ROLES.join(", ")}`, fallback: ROLES, read: readRoles },
  apiKey: {
    env: "CARILLON_API_KEY",
    expected: "at least 8 printable characters without spaces",
    fallback: undefined,
    isSecret: true,
    read: readText(/^[!-~]{8,256}$/),
  },
  drainMs: {
    env: "CARILLON_DRAIN_MS",
    expected: "milliseconds from 0 to 600000",
    // Kubernetes kills after 30 s.
    fallback: 25_000,
    read: readInteger(0, 600_000),
  },
  logLevel: {
    env: "CARILLON_LOG_LEVEL",
    expected: `one of ${LOG_LEVELS.join(", ")}`,
    fallback: "info",
    read: (given) => LOG_LEVELS.find((level) => level === given),
  },
  databaseConnections: {
    env: "CARILLON_DATABASE_CONNECTIONS",
    expected: "a whole number from 1 to 1000",
    fallback: 10,
    read: readInteger(1, 1000),
  },
  acceptLanes: {
    env: "CARILLON_ACCEPT_LANES",
    expected: "a whole number from 1 to 16",
    // Two keep PostgreSQL busy while the next batch is prepared; more only make batches smaller.
    fallback: 2,
    read: readInteger(1, 16),
  },
  acceptMaxWaiting: {
    env: "CARILLON_ACCEPT_MAX_WAITING",
    expected: "a whole number from 1 to 1000000",
    // At 30,000 a second this is more than half a second of work: who waits longer is better told so.
    fallback: 20_000,
    read: readInteger(1, 1_000_000),
  },
  batchSize: {
    env: "CARILLON_BATCH_SIZE",
    expected: "a whole number from 100 to 1000",
    // From 100 to 500 the rate nearly doubles; a larger claim also walks past dead rows less often.
    fallback: 1000,
    read: readInteger(100, 1000),
  },
  concurrency: {
    env: "CARILLON_CONCURRENCY",
    expected: "a whole number from 1 to 10000",
    // 200 sends at 20 ms each are 10,000 a second.
    fallback: 200,
    read: readInteger(1, 10_000),
  },
  leaseMs: {
    env: "CARILLON_LEASE_MS",
    expected: "milliseconds from 1000 to 3600000",
    fallback: 30_000,
    read: readInteger(1_000, 3_600_000),
  },
  sweepMs: {
    env: "CARILLON_SWEEP_MS",
    expected: "milliseconds from 100 to 60000",
    fallback: 5_000,
    read: readInteger(100, 60_000),
  },
  pollMs: {
    env: "CARILLON_POLL_MS",
    expected: "milliseconds from 10 to 60000, in the file also one for each lane",
    fallback: { urgent: 1_000, high: 1_000, normal: 1_000, low: 1_000 },
    read: readPolls,
  },
  maxAttempts: {
    env: "CARILLON_MAX_ATTEMPTS",
    expected: "a whole number from 1 to 100",
    fallback: 5,
    read: readInteger(1, 100),
  },
  sendTimeoutMs: {
    env: "CARILLON_SEND_TIMEOUT_MS",
    expected: "milliseconds from 100 to 600000",
    fallback: 10_000,
    read: readInteger(100, 600_000),
  },
  retentionDays: {
    env: "CARILLON_RETENTION_DAYS",
    expected: "days from 1 to 36500",
    fallback: 90,
    read: readInteger(1, 36_500),
  },
  providers: {
    env: "CARILLON_PROVIDERS",
    expected: "an object of providers, each with a type",
    fallback: BUILT_IN,
    isSecret: true,
    read: readProviders,
  },
  routes: {
    env: "CARILLON_ROUTES",
    expected: "an object from channels to names of providers, or lists of them",
    fallback: DEFAULT_ROUTES,
    read: readRoutes,
  },
  limits: {
    env: "CARILLON_LIMITS",
    expected: "an object with providers, tenant and recipient",
    fallback: NO_LIMITS,
    read: readLimits,
  },
  allowAddresses: {
    env: "CARILLON_ALLOW_ADDRESSES",
    expected: "host names, addresses or CIDRs with commas between them",
    fallback: [],
    read: readAllow,
  },
  locks: {
    env: "CARILLON_LOCKS",
    expected: `one of ${LOCKS.join(", ")}`,
    fallback: undefined,
    read: readLocks,
  },
  lockChannels: {
    env: "CARILLON_LOCK_CHANNELS",
    expected: "a list of channels",
    fallback: undefined,
    read: readLockedChannels,
  },
  secretKeys: {
    env: "CARILLON_SECRET_KEYS",
    expected: "one or several keys of 32 bytes in base64, with commas between them",
    fallback: [],
    isSecret: true,
    read: readKeys,
  },
  allowOrigins: {
    env: "CARILLON_ALLOW_ORIGINS",
    expected: "origins like https://app.example.com with commas between them",
    fallback: [],
    read: readOrigins,
  },
  maxStreams: {
    env: "CARILLON_MAX_STREAMS",
    expected: "a whole number from 1 to 1000000",
    fallback: MAX_STREAMS,
    read: readInteger(1, 1_000_000),
  },
  streamsPerUser: {
    env: "CARILLON_STREAMS_PER_USER",
    expected: "a whole number from 1 to 10000",
    fallback: DEFAULT_STREAMS_PER_USER,
    read: readInteger(1, 10_000),
  },
};

export type ConfigSources = { env: { [name: string]: string | undefined }; cwd: string };

/** Throws ConfigError with every fault. */
export async function readConfig({ env, cwd }: ConfigSources): Promise<Config> {
  const faults: ConfigFault[] = [];
  const file = await readConfigFile(env.CARILLON_CONFIG, cwd, faults);
  for (const key of Object.keys(file)) {
    if (!Object.hasOwn(SETTINGS, key)) faults.push({ key, expected: "a known setting", found: "an unknown one" });
  }
  const { lockChannels, ...config } = Object.fromEntries(
    Object.entries(SETTINGS).map(([name, setting]: [string, Setting<unknown>]) => {
      const fromEnv = env[setting.env] || undefined;
      const given = fromEnv ?? file[name];
      if (given === undefined) return [name, setting.fallback];
      const value = setting.read(given);
      if (value === undefined) {
        const found = setting.isSecret ? NOT_SHOWN : shortly(given);
        faults.push({ key: fromEnv === undefined ? name : setting.env, expected: setting.expected, found });
      }
      return [name, value];
    }),
  ) as Given;
  const channels = resolveProviders(config.providers ?? BUILT_IN, config.routes ?? DEFAULT_ROUTES, env);
  const { limits, faults: limitFaults } = resolveLimits(config.limits ?? NO_LIMITS, channels.providers);
  const { locks, faults: lockFaults } = resolveLocks(config.locks, lockChannels, env);
  faults.push(...channels.faults, ...limitFaults, ...lockFaults);
  if (faults.length > 0) throw new ConfigError(faults);
  return Object.freeze({ ...config, providers: channels.providers, limits, locks, home: resolve(cwd, config.home) });
}

/** Names that look like ours but are not: most likely misspelt. */
export const unknownVariables = (env: ConfigSources["env"]): string[] => {
  const known = new Set(["CARILLON_CONFIG", "CARILLON_URL", ...Object.values(SETTINGS).map(({ env }) => env)]);
  return Object.keys(env).filter((name) => name.startsWith("CARILLON_") && !known.has(name));
};

function readText(form: RegExp): (given: unknown) => string | undefined {
  return (given) => (typeof given === "string" && form.test(given) ? given : undefined);
}

function readInteger(least: number, most: number): (given: unknown) => number | undefined {
  return (given) => {
    const value = typeof given === "string" && /^\d{1,9}$/.test(given) ? Number(given) : given;
    return Number.isInteger(value) && Number(value) >= least && Number(value) <= most ? Number(value) : undefined;
  };
}

function readRoles(given: unknown): readonly Role[] | undefined {
  const names = typeof given === "string" ? given.split(",").map((name) => name.trim()) : given;
  if (!Array.isArray(names) || names.length === 0) return undefined;
  const roles = ROLES.filter((role) => names.includes(role));
  return roles.length === new Set(names).size ? Object.freeze(roles) : undefined;
}

function readDatabaseUrl(given: unknown): string | undefined {
  return typeof given === "string" && /^postgres(ql)?:\/\/\S+$/.test(given) && serversOf(given) ? given : undefined;
}

const isObject = (given: unknown): given is { [name: string]: unknown } =>
  given !== null && typeof given === "object" && !Array.isArray(given);

function readPolls(given: unknown): Config["pollMs"] | undefined {
  const read = readInteger(10, 60_000);
  const one = read(given);
  const lanes: { [lane: string]: unknown } = isObject(given) ? given : {};
  if (one === undefined && !isObject(given)) return undefined;
  const polls = PRIORITIES.map((lane) => [lane, one ?? read(lanes[lane] ?? 1_000)] as const);
  const isKnown = Object.keys(lanes).every((lane) => PRIORITIES.some((known) => known === lane));
  if (!isKnown || polls.some(([, ms]) => ms === undefined)) return undefined;
  return Object.fromEntries(polls) as Config["pollMs"];
}
