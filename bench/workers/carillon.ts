// Carillon as it comes: all roles, default settings, the full record, a provider that accepts everything at once.

import { readConfig } from "../../src/config.ts";
import { start } from "../../src/main.ts";
import { createLog } from "../../src/telemetry/log.ts";
import type { StartWorker } from "./worker.ts";

export const startCarillon: StartWorker = async ({ databaseUrl }, _settings, onJob) => {
  const config = await readConfig({
    env: { DATABASE_URL: databaseUrl, PORT: "0", CARILLON_API_KEY: "benchmark" },
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
