// For whoever runs it: health, readiness, liveness, metrics. Open to everybody who reaches the port,
// so nothing here tells more than whether it works.

import { Type } from "typebox";
import { isOutage, type Queryable } from "../store/database.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type Route, route } from "./route.ts";

export type Check = { name: string; run: () => Promise<string> };

type Operations = {
  db: Queryable;
  metrics: Metrics;
  isStopping: () => boolean;
  /** Fewer than this many seconds ago the process began. */
  uptimeSeconds: () => number;
};

const CHECK_MS = 2_000;
const tag = "Operations";

const JSON_TYPE = "application/json";
const ReadyBody = Type.Object({ ready: Type.Boolean(), reason: Type.Optional(Type.String()) });
const HealthBody = Type.Object({
  status: Type.String(),
  checks: Type.Array(
    Type.Object({ name: Type.String(), healthy: Type.Boolean(), latencyMs: Type.Number(), detail: Type.String() }),
  ),
  uptime: Type.Number(),
});

export function operationRoutes({ db, metrics, isStopping, uptimeSeconds }: Operations): Route[] {
  const checks: Check[] = [
    {
      name: "database",
      async run() {
        const { rows } = await db.query<{ major: number }>(
          "select current_setting('server_version_num')::int / 10000 as major",
        );
        return `PostgreSQL ${rows[0]?.major}`;
      },
    },
    {
      name: "queue",
      async run() {
        const { rows } = await db.query<{ waits: boolean }>("select exists (select from carillon.ready) as waits");
        return rows[0]?.waits ? "postgres, notifications are waiting" : "postgres, empty";
      },
    },
  ];

  /** Anybody may ask, as often as they like: one look at a time, and all who ask meanwhile share it. */
  const underWay = new Map<Check, ReturnType<typeof perform>>();
  function look(check: Check): ReturnType<typeof perform> {
    const found = underWay.get(check);
    if (found) return found;
    const looking = perform(check).finally(() => underWay.delete(check));
    underWay.set(check, looking);
    return looking;
  }

  const health = route({
    method: "GET",
    path: "/health",
    summary: "Health of each part",
    tag,
    answers: {
      200: { description: "All is well", schema: HealthBody },
      503: { description: "Something is not", schema: HealthBody, mediaType: JSON_TYPE },
    },
    async handle() {
      const results = await Promise.all(checks.map(look));
      const isHealthy = results.every(({ healthy }) => healthy);
      const status = isHealthy ? "healthy" : "unhealthy";
      return { status: isHealthy ? 200 : 503, body: { status, checks: results, uptime: uptimeSeconds() } };
    },
  });

  const ready = route({
    method: "GET",
    path: "/ready",
    summary: "Whether requests should be sent here",
    tag,
    answers: {
      200: { description: "Ready", schema: ReadyBody },
      503: { description: "Shutting down, or the database is away", schema: ReadyBody, mediaType: JSON_TYPE },
    },
    async handle() {
      if (isStopping()) return { status: 503, body: { ready: false, reason: "shutting down" } };
      const [database] = await Promise.all(checks.slice(0, 1).map(look));
      return database?.healthy
        ? { status: 200, body: { ready: true } }
        : { status: 503, body: { ready: false, reason: "the database does not answer" } };
    },
  });

  const live = route({
    method: "GET",
    path: "/live",
    summary: "Whether the process runs",
    tag,
    answers: { 200: { description: "It does", schema: Type.Object({ live: Type.Boolean() }) } },
    handle: () => ({ status: 200, body: { live: true } }),
  });

  const figures = route({
    method: "GET",
    path: "/metrics",
    summary: "Metrics for Prometheus",
    tag,
    answers: { 200: { description: "Prometheus text", mediaType: "text/plain" } },
    handle: async () => ({
      status: 200,
      body: await metrics.registry.metrics(),
      headers: { "content-type": metrics.registry.contentType },
    }),
  });

  return [health, ready, live, figures];
}

async function perform({ name, run }: Check) {
  const startedAt = performance.now();
  const tooLong = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error("timeout")), CHECK_MS).unref();
  });
  const latencyMs = () => Math.round((performance.now() - startedAt) * 10) / 10;
  try {
    const detail = await Promise.race([run(), tooLong]);
    return { name, healthy: true, latencyMs: latencyMs(), detail };
  } catch (error) {
    const detail = isOutage(error) ? "does not answer" : "answers with an error";
    return { name, healthy: false, latencyMs: latencyMs(), detail };
  }
}
