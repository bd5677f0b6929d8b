// For whoever runs it: health, readiness, liveness, metrics. Open to everybody who reaches the port,
// so nothing here tells more than whether it works.

import { Registry } from "prom-client";
import { Type } from "typebox";
import { type Route, route } from "#http/core/route.ts";
import type { Health } from "#telemetry/health.ts";

export type OperationOptions = {
  health: Health;
  /** As Prometheus reads them. */
  figures: () => Promise<string>;
  isStopping: () => boolean;
  uptimeSeconds: () => number;
};

const tag = "Operations";
const JSON_TYPE = "application/json";
const ReadyBody = Type.Object({ ready: Type.Boolean(), reason: Type.Optional(Type.String()) });
const HealthBody = Type.Object({
  status: Type.String(),
  checks: Type.Array(
    Type.Object({
      name: Type.String(),
      healthy: Type.Boolean(),
      degraded: Type.Optional(Type.Boolean()),
      latencyMs: Type.Number(),
      detail: Type.String(),
    }),
  ),
  uptime: Type.Number(),
});

export function operationRoutes({ health, figures, isStopping, uptimeSeconds }: OperationOptions): Route[] {
  const parts = route({
    method: "GET",
    path: "/health",
    summary: "Health of each part",
    tag,
    answers: {
      200: { description: "All is well; or `degraded`: it serves, and somebody should look", schema: HealthBody },
      503: { description: "Something is not", schema: HealthBody, mediaType: JSON_TYPE },
    },
    async handle() {
      const results = await health.all();
      const isHealthy = results.every(({ healthy }) => healthy);
      const isDegraded = results.some(({ degraded }) => degraded);
      const status = isHealthy ? (isDegraded ? "degraded" : "healthy") : "unhealthy";
      return {
        status: isHealthy ? 200 : 503,
        body: { status, checks: results, uptime: Math.round(uptimeSeconds() * 10) / 10 },
      };
    },
  });

  const ready = route({
    method: "GET",
    path: "/ready",
    summary: "Whether requests should be sent here",
    tag,
    answers: {
      200: { description: "Ready", schema: ReadyBody },
      503: {
        description: "Shutting down, or the database is away or stores nothing",
        schema: ReadyBody,
        mediaType: JSON_TYPE,
      },
    },
    async handle() {
      if (isStopping()) return { status: 503, body: { ready: false, reason: "shutting down" } };
      const reason = await health.whyNotReady();
      return reason === undefined
        ? { status: 200, body: { ready: true } }
        : { status: 503, body: { ready: false, reason } };
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

  const metrics = route({
    method: "GET",
    path: "/metrics",
    summary: "Metrics for Prometheus",
    tag,
    answers: { 200: { description: "Prometheus text", mediaType: "text/plain" } },
    handle: async () => ({
      status: 200,
      body: await figures(),
      headers: { "content-type": Registry.PROMETHEUS_CONTENT_TYPE },
    }),
  });

  return [parts, ready, live, metrics];
}
