// The part of the configuration that says where everything is kept, over how many connections, and for how long.

import { serversOf } from "#store/connection/servers.ts";
import { readInteger, type SettingsOf } from "./setting.ts";

export type DatabaseConfig = {
  /** Undefined: an embedded PostgreSQL under `home`. */
  databaseUrl: string | undefined;
  /** PostgreSQL itself, when `databaseUrl` leads through a pooler that shares sessions. */
  databaseDirectUrl: string | undefined;
  /** Connections for small requests; everything else has its own. */
  databaseConnections: number;
  /** Commits of acceptance under way at once, each on a connection. */
  acceptCommits: number;
  acceptMaxWaiting: number;
  retentionDays: number;
  auditDays: number;
  feedDays: number;
};

export const DATABASE: SettingsOf<DatabaseConfig> = {
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
  databaseConnections: {
    env: "CARILLON_DATABASE_CONNECTIONS",
    expected: "a whole number from 1 to 1000",
    fallback: 10,
    read: readInteger(1, 1000),
  },
  acceptCommits: {
    env: "CARILLON_ACCEPT_COMMITS",
    formerly: { env: "CARILLON_ACCEPT_LANES", name: "acceptLanes" },
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
  retentionDays: {
    env: "CARILLON_RETENTION_DAYS",
    expected: "days from 1 to 36500",
    fallback: 90,
    read: readInteger(1, 36_500),
  },
  auditDays: {
    env: "CARILLON_AUDIT_DAYS",
    expected: "days from 1 to 36500",
    // A year, and time to look at it.
    fallback: 400,
    read: readInteger(1, 36_500),
  },
  feedDays: {
    env: "CARILLON_FEED_DAYS",
    expected: "days from 1 to 365",
    // Whoever follows and was away comes back within a week, or reads the record.
    fallback: 7,
    read: readInteger(1, 365),
  },
};

function readDatabaseUrl(given: unknown): string | undefined {
  return typeof given === "string" && /^postgres(ql)?:\/\/\S+$/.test(given) && serversOf(given) ? given : undefined;
}
