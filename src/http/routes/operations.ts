// For whoever runs it: health, readiness, liveness, metrics. Open to everybody who reaches the port,
// so nothing here tells more than whether it works.

import { Type } from "typebox";
import { type Route, route } from "#http/core/route.ts";
import { ASTRAY_MS, type Clock } from "#store/connection/clock.ts";
import { isOutage, type Queryable } from "#store/connection/database.ts";
import { probeWrite } from "#store/connection/probe.ts";
import type { Metrics } from "#telemetry/metrics.ts";

export type Check = { name: string; run: () => Promise<string> };

type Operations = {
  db: Queryable;
  clock: Pick<Clock, "aheadMs">;
  metrics: Metrics;
  isStopping: () => boolean;
  /** Sends were refused a moment ago, for want of a database that stores them. */
  areSendsRefused?: () => boolean;
  /** Fewer than this many seconds ago the process began. */
  uptimeSeconds: () => number;
};

const CHECK_MS = 2_000;
/** However often it is asked for, no more than one write in this time. */
const WRITE_MS = 1_000;
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

export function operationRoutes(options: Operations): Route[] {
  const { db, clock, metrics, isStopping, areSendsRefused = () => false, uptimeSeconds } = options;
  let wroteAt = Number.NEGATIVE_INFINITY;
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
      name: "writes",
      async run() {
        // A full disk, a standby, a commit that waits for one: it answers, and stores nothing.
        if (areSendsRefused()) throw new Error("sends are refused");
        if (performance.now() - wroteAt > WRITE_MS) {
          await probeWrite(db);
          wroteAt = performance.now();
        }
        return "stores what is sent";
      },
    },
    {
      name: "queue",
      async run() {
        const { rows } = await db.query<{ waits: boolean }>("select exists (select from carillon.ready) as waits");
        return rows[0]?.waits ? "postgres, notifications are waiting" : "postgres, empty";
      },
    },
    {
      // Healthy all the same: the database's clock decides, and nothing depends on this machine's.
      name: "clock",
      run: async () => toldOf(clock.aheadMs()),
    },
  ];

  /** Anybody may ask, as often as they like: one look at a time, and all who ask meanwhile share it. */
  const underWay = new Map<string, Promise<string>>();
  const look = ({ name, run }: Check) =>
    perform({
      name,
      run() {
        const running = underWay.get(name) ?? run().finally(() => underWay.delete(name));
        underWay.set(name, running);
        return running;
      },
    });

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
      503: {
        description: "Shutting down, or the database is away or stores nothing",
        schema: ReadyBody,
        mediaType: JSON_TYPE,
      },
    },
    async handle() {
      if (isStopping()) return { status: 503, body: { ready: false, reason: "shutting down" } };
      const [database, writes] = await Promise.all(checks.slice(0, 2).map(look));
      if (database?.healthy && writes?.healthy) return { status: 200, body: { ready: true } };
      const reason = database?.healthy ? "the database stores nothing" : "the database does not answer";
      return { status: 503, body: { ready: false, reason } };
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

function toldOf(aheadMs: number): string {
  if (Math.abs(aheadMs) <= ASTRAY_MS) return "as the database's";
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  return `${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} the database's`;
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
