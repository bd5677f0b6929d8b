// Carillon as it comes: all roles, default settings, the full record, a provider that accepts everything at once.

import { readConfig } from "../../src/config/read.ts";
import { start } from "../../src/main.ts";
import { createLog } from "../../src/telemetry/log.ts";
import type { StartWorker } from "./worker.ts";

/** What the guards' benchmark sets besides. */
const GUARDS: { readonly [settings: string]: { [name: string]: string } } = {
  guarded: {
    CARILLON_LIMITS: '{"providers":{"webhook":{"account":[{"per":"second","most":10}]}}}',
    CARILLON_LOCKS: "postgres",
    CARILLON_LOCK_CHANNELS: "slack",
  },
  limited: { CARILLON_LIMITS: '{"tenant":[{"per":"second","most":1000000}]}' },
};

export const startCarillon: StartWorker = async ({ databaseUrl }, settings, onJob) => {
  const config = await readConfig({
    env: { DATABASE_URL: databaseUrl, PORT: "0", CARILLON_API_KEY: "benchmark", ...GUARDS[settings] },
    cwd: "/",
  });
  const providers = {
    ...config.providers,
    noop: {
      type: "test" as const,
      onSend: ({ request }: { request: { metadata?: { at?: unknown } } }) => onJob(Number(request.metadata?.at ?? 0)),
    },
  };
  return start({ ...config, providers, routes: { ...config.routes, email: "noop" } }, createLog("error"), () => {});
};
