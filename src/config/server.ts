// The part of the configuration that says what this process is: where it listens, which roles it has, how many there are of it, how it ends.

import { availableParallelism } from "node:os";
import { readInteger, readSome, readText, type SettingsOf } from "./setting.ts";

export const ROLES = ["api", "worker", "callbacks", "scheduler", "keeper", "stream", "source", "sink"] as const;
export type Role = (typeof ROLES)[number];
const TRACE_PARENTS = ["default", "all", "none"] as const;
const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

const MOST_PROCESSES = 64;
/** PostgreSQL needs cores too, and each process has connections of its own. */
const MOST_AUTO = 8;

export type ServerConfig = {
  host: string;
  port: number;
  /** Where the outside world reaches us, for signatures over URLs. */
  publicUrl: string | undefined;
  home: string;
  roles: readonly Role[];
  apiKey: string | undefined;
  drainMs: number;
  /** How many serve behind the port. */
  processes: number;
  logLevel: (typeof LOG_LEVELS)[number];
  /** Whether POST /mcp is served. */
  mcp: boolean;
  /** Whose traces ours are part of; others' are linked to. */
  traceParents: (typeof TRACE_PARENTS)[number];
  /** The clock may be moved and sends be made to fail, by whoever asks. */
  development: boolean;
};

export const SERVER: SettingsOf<ServerConfig> = {
  host: { env: "HOST", expected: "a host name or address", fallback: "127.0.0.1", read: readText(/^[\w.:-]+$/) },
  port: { env: "PORT", expected: "a port from 0 to 65535", fallback: 8420, read: readInteger(0, 65_535) },
  publicUrl: {
    env: "CARILLON_PUBLIC_URL",
    expected: "a URL like https://carillon.example.com",
    fallback: undefined,
    read: readText(/^https?:\/\/\S+[^/]$/),
  },
  home: { env: "CARILLON_HOME", expected: "a directory", fallback: ".carillon", read: readText(/./) },
  roles: { env: "CARILLON_ROLES", expected: `a list of ${ROLES.join(", ")}`, fallback: ROLES, read: readSome(ROLES) },
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
  processes: {
    env: "CARILLON_PROCESSES",
    expected: `auto, or a whole number from 1 to ${MOST_PROCESSES}`,
    fallback: 1,
    read: (given) =>
      given === "auto" ? Math.min(availableParallelism(), MOST_AUTO) : readInteger(1, MOST_PROCESSES)(given),
  },
  logLevel: {
    env: "CARILLON_LOG_LEVEL",
    expected: `one of ${LOG_LEVELS.join(", ")}`,
    fallback: "info",
    read: (given) => LOG_LEVELS.find((level) => level === given),
  },
  mcp: {
    env: "CARILLON_MCP",
    expected: "on or off",
    // Agents read what others wrote: whoever lets them in should know of it.
    fallback: false,
    read: (given) => (given === "on" || given === true ? true : given === "off" || given === false ? false : undefined),
  },
  traceParents: {
    env: "CARILLON_TRACE_PARENTS",
    expected: `one of ${TRACE_PARENTS.join(", ")}`,
    // A stranger's traceparent would decide what is recorded, and where.
    fallback: "default",
    read: (given) => TRACE_PARENTS.find((tenants) => tenants === given),
  },
  development: {
    env: "CARILLON_DEVELOPMENT",
    expected: "true or false",
    // Nobody's reminders are to go out early because somebody tried a route.
    fallback: false,
    read: (given) => [true, false].find((one) => String(given) === String(one)),
  },
};
