// Carillon as it comes: all roles, default settings, the full record, a provider that accepts everything at once.

import { readConfig } from "../../src/config/read.ts";
import { start } from "../../src/main.ts";
import { createLog } from "../../src/telemetry/log.ts";
import type { StartWorker } from "./worker.ts";

/** Seals the secrets of endpoints. */
export const CALLBACK_KEY = Buffer.alloc(32, 5);

/** What some benchmarks set besides. */
const BESIDES: { readonly [settings: string]: { [name: string]: string } } = {
  guarded: {
    CARILLON_LIMITS: '{"providers":{"webhook":{"account":[{"per":"second","most":10}]}}}',
    CARILLON_LOCKS: "postgres",
    CARILLON_LOCK_CHANNELS: "slack",
  },
  limited: { CARILLON_LIMITS: '{"tenant":[{"per":"second","most":1000000}]}' },
  // Longer than the longest send: what is slow here is not in trouble.
  isolation: { CARILLON_SEND_TIMEOUT_MS: "30000" },
  receivers: { CARILLON_ALLOW_ADDRESSES: "127.0.0.0/8" },
  callbacks: { CARILLON_ALLOW_ADDRESSES: "127.0.0.0/8", CARILLON_SECRET_KEYS: CALLBACK_KEY.toString("base64") },
};

const quickProvider = (onJob: (at: number) => void) => ({
  type: "test" as const,
  onSend: ({ request }: Sent) => onJob(Number(request.metadata?.at ?? 0)),
});

const MOST_MS = 20_000;

type Sent = { request: { metadata?: { at?: unknown; takesMs?: unknown } } };

/** Accepts everything, and takes as long as the message says: the provider asks for chance once, when a send has just begun. */
function slowProvider(onJob: (at: number) => void) {
  let takesMs = 0;
  return {
    type: "test" as const,
    latencyMs: [0, MOST_MS] as [number, number],
    random: () => takesMs / MOST_MS,
    onSend({ request: { metadata } }: Sent) {
      takesMs = Number(metadata?.takesMs ?? 0);
      onJob(Number(metadata?.at ?? 0));
    },
  };
}

export const startCarillon: StartWorker = async ({ databaseUrl }, settings, onJob) => {
  const engines = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^CARILLON_(REDIS|SQS)_/.test(name)),
  );
  const config = await readConfig({
    env: {
      DATABASE_URL: databaseUrl,
      PORT: "0",
      CARILLON_API_KEY: "benchmark",
      ...engines,
      ...BESIDES[settings],
    },
    cwd: "/",
  });
  const providers = {
    ...config.providers,
    noop: settings === "isolation" ? slowProvider(onJob) : quickProvider(onJob),
  };
  return start({ ...config, providers, routes: { ...config.routes, email: "noop" } }, createLog("error"), () => {});
};
