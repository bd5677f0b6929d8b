// The part of the configuration that says how much is allowed.

import { PERIODS, type Rate } from "#domain/gcra.ts";
import type { Fault } from "#domain/problems.ts";
import { type Limits, NO_LIMITS, type ProviderLimits } from "#guards/limit/limited.ts";
import { REDIS_URL } from "#wire/redis.ts";
import type { ProviderSettings } from "./channels.ts";
import { misfit, shortly } from "./fault.ts";
import { isObject, readObject, type SettingsOf } from "./setting.ts";

export type LimitsConfig = {
  /** How much may be sent, by provider, tenant and recipient. */
  limits: Limits;
  /** Where it is kept how much of them is used. */
  limitsIn: LimitsIn;
  redisUrl: string | undefined;
  /** Of the names of all keys there: who share a Redis have others. */
  redisPrefix: string;
};
export const LIMITS_IN = ["postgres", "redis"] as const;
export type LimitsIn = (typeof LIMITS_IN)[number];

export const LIMITS: SettingsOf<LimitsConfig> = {
  limits: {
    env: "CARILLON_LIMITS",
    expected: "an object with providers, tenant and recipient",
    fallback: NO_LIMITS,
    // Checked more closely by resolveLimits(), which knows the providers.
    read: (given) => readObject(given) as Limits | undefined,
  },
  limitsIn: {
    env: "CARILLON_LIMITS_IN",
    expected: `one of ${LIMITS_IN.join(", ")}`,
    fallback: "postgres",
    read: (given) => LIMITS_IN.find((place) => place === given),
  },
  redisUrl: {
    env: "CARILLON_REDIS_URL",
    expected: "a URL like redis://user:password@host:6379, rediss:// with TLS, redis+cluster:// or redis+sentinel://",
    fallback: undefined,
    isSecret: true,
    read: (given) => (typeof given === "string" && REDIS_URL.test(given) ? given : undefined),
  },
  redisPrefix: {
    env: "CARILLON_REDIS_PREFIX",
    expected: "up to 50 letters, digits, _ . and -",
    fallback: "carillon",
    read: (given) => (typeof given === "string" && /^[\w.-]{1,50}$/.test(given) ? given : undefined),
  },
};

/** What is kept in Redis needs one. */
export const faultsOfRedis = ({ limitsIn, redisUrl }: Pick<LimitsConfig, "limitsIn" | "redisUrl">): Fault[] =>
  limitsIn === "redis" && redisUrl === undefined
    ? [misfit("CARILLON_REDIS_URL", "a URL, as limits are kept in Redis", "none")]
    : [];

const MOST = 1_000_000_000;

/** The limits with every fault, each at its own key. */
export function resolveLimits(given: unknown, providers: ProviderSettings): { limits: Limits; faults: Fault[] } {
  const faults: Fault[] = [];
  const fault = (key: string, expected: string, found: unknown) => {
    faults.push(misfit(key, expected, found === undefined ? "nothing" : shortly(found)));
  };
  const parts = (key: string, of: unknown, known: readonly string[]): { [name: string]: unknown } => {
    if (of === undefined) return {};
    if (!isObject(of)) {
      fault(key, "an object", of);
      return {};
    }
    for (const name of Object.keys(of)) {
      if (!known.includes(name)) fault(`${key}.${name}`, `one of ${known.join(", ")}`, name);
    }
    return of;
  };
  const rates = (key: string, of: unknown): readonly Rate[] => {
    if (of === undefined) return [];
    if (!Array.isArray(of)) {
      fault(key, 'a list like [{ "per": "second", "most": 1 }]', of);
      return [];
    }
    const seen = new Set<unknown>();
    for (const [n, one] of of.entries()) {
      const { per, most, burst } = parts(`${key}.${n}`, one, ["per", "most", "burst"]);
      if (!PERIODS.some((period) => period === per)) fault(`${key}.${n}.per`, `one of ${PERIODS.join(", ")}`, per);
      else if (seen.has(per)) fault(`${key}.${n}.per`, "each period once", per);
      seen.add(per);
      const isCount = Number.isInteger(most) && Number(most) >= 1 && Number(most) <= MOST;
      if (!isCount) fault(`${key}.${n}.most`, `a whole number from 1 to ${MOST}`, most);
      else if (
        burst !== undefined &&
        !(Number.isInteger(burst) && Number(burst) >= 1 && Number(burst) <= Number(most))
      ) {
        fault(`${key}.${n}.burst`, "a whole number from 1 to most", burst);
      }
    }
    return Object.freeze([...(of as Rate[])]);
  };

  const { providers: named, tenant, recipient } = parts("limits", given, ["providers", "tenant", "recipient"]);
  const byProvider = parts("limits.providers", named, Object.keys(providers));
  const limits: { [name: string]: ProviderLimits } = {};
  for (const [name, of] of Object.entries(byProvider)) {
    const key = `limits.providers.${name}`;
    const { account, recipient: each } = parts(key, of, ["account", "recipient"]);
    limits[name] = { account: rates(`${key}.account`, account), recipient: rates(`${key}.recipient`, each) };
  }
  return {
    limits: Object.freeze({
      providers: Object.freeze(limits),
      tenant: rates("limits.tenant", tenant),
      recipient: rates("limits.recipient", recipient),
    }),
    faults,
  };
}
