// Configuration: the environment over a config file over defaults, read once into a frozen value.
//
// Every fault is found before anything starts, and all are reported together. Nothing else reads
// process.env.

import { resolve } from "node:path";
import type { ArchiveSettings } from "#archive/settings.ts";
import type { Fault } from "#domain/problems.ts";
import type { SqsSettings } from "#wire/sqs.ts";
import { ARCHIVE, ARCHIVE_VARIABLES, type ArchiveGiven, resolveArchive } from "./archive.ts";
import { CHANNEL_SETTINGS, type ChannelsConfig, resolveProviders } from "./channels.ts";
import { CONNECTORS, type ConnectorsConfig, resolveConnectors } from "./connectors.ts";
import { DATABASE, type DatabaseConfig } from "./database.ts";
import { DELIVERY, type DeliveryConfig } from "./delivery.ts";
import { ConfigError, misfit, NOT_SHOWN, shortly } from "./fault.ts";
import { readConfigFile } from "./file.ts";
import { INBOX, type InboxConfig } from "./inbox.ts";
import { faultsOfRedis, LIMITS, type LimitsConfig, resolveLimits } from "./limits.ts";
import { LOCKING, type LockingGiven, type LockSettings, resolveLocks } from "./locks.ts";
import { SERVER, type ServerConfig } from "./server.ts";
import type { Environment, Setting, SettingsOf } from "./setting.ts";
import { resolveSqs, SQS, type SqsGiven } from "./sqs.ts";
import { resolveTakes, TAKES, type TakesConfig } from "./takes.ts";

type Parts = ServerConfig &
  DatabaseConfig &
  DeliveryConfig &
  ChannelsConfig &
  LimitsConfig &
  InboxConfig &
  TakesConfig &
  ConnectorsConfig;

export type Config = Readonly<
  Parts & {
    locks: LockSettings;
    /** Where weeks go before they are dropped; undefined: nowhere. */
    archive: ArchiveSettings | undefined;
    /** Where ready work may wait; undefined: not there. */
    sqs: SqsSettings | undefined;
    /** Old names that were found: they count, and their owner is told the new ones. */
    formerNames: readonly FormerName[];
  }
>;
export type FormerName = { former: string; now: string };
/** How the log tells of one. */
export const FORMER_NAME = "a setting has another name now; the former one still counts";

/** As it is written; what belongs together is put together once all of it is read. */
type Given = Parts & LockingGiven & ArchiveGiven & SqsGiven;

const SETTINGS: SettingsOf<Given> = {
  ...SERVER,
  ...DATABASE,
  ...DELIVERY,
  ...CHANNEL_SETTINGS,
  ...LIMITS,
  ...LOCKING,
  ...INBOX,
  ...TAKES,
  ...ARCHIVE,
  ...SQS,
  ...CONNECTORS,
};
const ALL: readonly (readonly [name: string, setting: Setting<unknown>])[] = Object.entries(SETTINGS);

export type ConfigSources = { env: Environment; cwd: string };

/** Throws ConfigError with every fault. */
export async function readConfig({ env, cwd }: ConfigSources): Promise<Config> {
  const faults: Fault[] = [];
  const file = await readConfigFile(env.CARILLON_CONFIG, cwd, faults);
  const isKnown = (key: string) => ALL.some(([name, { formerly }]) => key === name || key === formerly?.name);
  for (const key of Object.keys(file)) {
    if (!isKnown(key)) faults.push(misfit(key, "a known setting", "an unknown one"));
  }
  const formerNames: FormerName[] = [];
  const given = Object.fromEntries(
    ALL.map(([name, setting]) => {
      const [path, value] = find(name, setting, env, file, formerNames);
      if (value === undefined) return [name, setting.fallback];
      const read = setting.read(value);
      if (read === undefined) {
        faults.push(misfit(path, setting.expected, setting.isSecret ? NOT_SHOWN : shortly(value)));
      }
      // What could not be read must not make faults of its own.
      return [name, read ?? setting.fallback];
    }),
  ) as Given;
  const { lockChannels, locks: lockKind, archive: archiveGiven, ...others } = given;
  const { sqsRegion, sqsEndpoint, sqsPrefix, sqsAccessKeyId, sqsSecretAccessKey, sqsSessionToken, ...config } = others;
  const { providers, faults: ofProviders } = resolveProviders(config.providers, config.routes, env);
  const { limits, faults: ofLimits } = resolveLimits(config.limits, providers);
  const { locks, faults: ofLocks } = resolveLocks(lockKind, lockChannels, env);
  const { takes, faults: ofTakes } = resolveTakes(config.takes);
  const { archive, faults: ofArchive } = resolveArchive(archiveGiven, env, cwd);
  const { sqs, faults: ofSqs } = resolveSqs(given, env);
  const { sources, sinks, faults: ofConnectors } = resolveConnectors(config, env);
  faults.push(
    ...ofProviders,
    ...ofLimits,
    ...faultsOfRedis(config),
    ...ofLocks,
    ...ofTakes,
    ...ofArchive,
    ...ofSqs,
    ...ofConnectors,
  );
  if (faults.length > 0) throw new ConfigError(faults);
  const home = resolve(cwd, config.home);
  return Object.freeze({
    ...config,
    home,
    providers,
    limits,
    locks,
    takes,
    archive,
    sqs,
    sources,
    sinks,
    formerNames: Object.freeze(formerNames),
  });
}

type File = { readonly [name: string]: unknown };

/** Where the setting is given and what stands there: the environment before the file, a new name before an old one. */
function find(
  name: string,
  { env: variable, formerly }: Setting<unknown>,
  env: Environment,
  file: File,
  former: FormerName[],
) {
  const places: [path: string, value: unknown, former?: FormerName][] = [[variable, env[variable] || undefined]];
  if (formerly) places.push([formerly.env, env[formerly.env] || undefined, { former: formerly.env, now: variable }]);
  places.push([name, file[name]]);
  if (formerly) places.push([formerly.name, file[formerly.name], { former: formerly.name, now: name }]);
  const given = places.filter(([, value]) => value !== undefined);
  former.push(...given.flatMap(([, , old]) => old ?? []));
  return given[0] ?? ([name, undefined] as const);
}

/** Names that look like ours but are not: most likely misspelt. */
export const unknownVariables = (env: Environment): string[] => {
  const ours = ALL.flatMap(([, { env, formerly }]) => [env, formerly?.env]);
  const known = new Set(["CARILLON_CONFIG", "CARILLON_URL", ...ARCHIVE_VARIABLES, ...ours]);
  return Object.keys(env).filter((name) => name.startsWith("CARILLON_") && !known.has(name));
};
