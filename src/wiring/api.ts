// The api role: the HTTP server. Health and metrics are served by every process, the rest of the
// routes only by those that have the role.

import { Server, type Socket } from "node:net";
import { createProviderHealth } from "#channels/provider-health.ts";
import { createIds } from "#domain/ids.ts";
import type { RetryPolicy } from "#domain/retry.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import { type Authenticate, createAuthenticate } from "#http/core/authenticate.ts";
import { createServer } from "#http/core/server.ts";
import type { RequestTurns } from "#http/core/turns.ts";
import { demoRoutes } from "#http/pages/demo-page.ts";
import { documentRoutes } from "#http/pages/documents.ts";
import { inboxScriptRoutes } from "#http/pages/inbox-script.ts";
import { accountRoutes } from "#http/routes/accounts.ts";
import { changeRoutes } from "#http/routes/changes.ts";
import { costRoutes } from "#http/routes/costs.ts";
import { deadLetterRoutes } from "#http/routes/dead-letters.ts";
import { devRoutes } from "#http/routes/dev.ts";
import { deviceRoutes } from "#http/routes/devices.ts";
import { explainRoutes } from "#http/routes/explain.ts";
import { inboxRoutes } from "#http/routes/inbox.ts";
import { inboxSessionRoutes } from "#http/routes/inbox-sessions.ts";
import { inboxStreamRoutes } from "#http/routes/inbox-stream.ts";
import { keyRoutes } from "#http/routes/keys.ts";
import { notificationRoutes } from "#http/routes/notifications.ts";
import { operationRoutes } from "#http/routes/operations.ts";
import { providerRoutes } from "#http/routes/providers.ts";
import { queueRoutes } from "#http/routes/queue.ts";
import { reminderScopeRoutes } from "#http/routes/reminder-scopes.ts";
import { reminderRoutes } from "#http/routes/reminders.ts";
import { reportRoutes } from "#http/routes/reports.ts";
import { scheduleRoutes } from "#http/routes/schedules.ts";
import { sendRoutes } from "#http/routes/sends.ts";
import { suppressionRoutes } from "#http/routes/suppressions.ts";
import { templateRoutes } from "#http/routes/templates.ts";
import { workerRoutes } from "#http/routes/workers.ts";
import type { Hub } from "#inbox/hub.ts";
import { createSubscriberTokens } from "#inbox/tokens.ts";
import { hasReady } from "#queue/postgres/has-ready.ts";
import { type Acknowledge, createAcknowledge } from "#steps/manage/acknowledge.ts";
import type { Accept } from "#steps/walk/accept.ts";
import type { Clock } from "#store/connection/clock.ts";
import type { Database } from "#store/connection/database.ts";
import type { InboxHint } from "#store/connection/inbox-hint.ts";
import { createHealth } from "#telemetry/health.ts";
import type { Logger } from "#telemetry/log.ts";
import type { Metrics } from "#telemetry/metrics.ts";
import type { Channels } from "./channels.ts";

export type ApiOptions = {
  host: string;
  port: number;
  apiKey: string | undefined;
  secretKeys: SecretKeys;
  publicUrl: string | undefined;
  retry: RetryPolicy;
  channels: Channels;
  version: string;
  servesV1: boolean;
  /** With an embedded database: there is a page to try things out. */
  isDevelopment: boolean;
  database: Database;
  clock: Clock;
  accept: Accept;
  /** Something was put into the queue. */
  wake: () => void;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
  silentMs: number;
  hintInboxes: InboxHint;
  /** The streams of inboxes, in a process that has the role. */
  hub: Hub | undefined;
  turns: RequestTurns;
  areSendsRefused: () => boolean;
  allowOrigins: readonly string[];
  log: Logger;
  metrics: Metrics;
};
export type RunningApi = { url: string; stop(drainMs: number): Promise<void> };

const LINGER_MS = 1_000;
const FLUSH_USES_MS = 10_000;

export async function startApi(options: ApiOptions): Promise<RunningApi> {
  const {
    host,
    port,
    apiKey,
    secretKeys,
    publicUrl,
    retry,
    channels,
    version,
    servesV1,
    database,
    clock,
    accept,
    wake,
    plan,
    silentMs,
    hintInboxes,
    hub,
    turns,
    allowOrigins,
    log,
    metrics,
  } = options;
  const { small: db, large } = database;
  const { now, nowMs } = clock;
  const { providers, templates, noticeTexts, reload } = channels;
  let isStopping = false;
  const tokens = createSubscriberTokens(database.authenticate, nowMs);
  const acknowledge = createAcknowledge(db, hintInboxes);
  const auth = createAuthenticate({
    db: database.authenticate,
    tokens,
    fixedKey: apiKey,
    now: nowMs,
    onFailure: () => metrics.failedLogins.inc(),
  });
  const health = createHealth({
    db: database.own,
    clock,
    hasReady: () => hasReady(database.own),
    areSendsRefused: options.areSendsRefused,
  });
  const operations = operationRoutes({
    health,
    metrics,
    isStopping: () => isStopping,
    uptimeSeconds: () => Math.round(process.uptime() * 10) / 10,
  });
  const v1 = [
    ...sendRoutes({ accept }),
    ...notificationRoutes({ db, large }),
    ...changeRoutes({ db, now, wake, plan }),
    ...scheduleRoutes({ pool: db, noticeTexts, now, plan }),
    ...reminderRoutes({ pool: db, noticeTexts, now, plan }),
    ...reminderScopeRoutes({ pool: db, plan }),
    ...deadLetterRoutes({ large, wake }),
    ...templateRoutes({ pool: db, templates }),
    ...explainRoutes({ db, providers, templates, retry, now }),
    ...deviceRoutes({ db }),
    ...suppressionRoutes({ db }),
    ...providerRoutes({ db, large, turns, providers, health: createProviderHealth(now), now }),
    ...accountRoutes({ db, providers, secretKeys, reload }),
    ...reportRoutes({ db, providers, publicUrl }),
    ...costRoutes({ db: large, now }),
    ...devRoutes({ db }),
    ...inboxRoutes({ db, acknowledge }),
    ...inboxSessionRoutes({ tokens, publicUrl, now }),
    ...queueRoutes({ db: large }),
    ...workerRoutes({ db, silentMs }),
    ...keyRoutes({ db, auth, hasFixedKey: apiKey !== undefined, now }),
  ];
  const onError = (error: unknown) => log.warn({ err: error }, "what a reader has was not marked");
  const inTurn: Acknowledge = (actor, userId, mark) =>
    turns.small(actor.tenant, () => acknowledge(actor, userId, mark));
  const streams = hub ? inboxStreamRoutes({ hub, acknowledge: inTurn, onError }) : [];
  const served = [...(servesV1 ? v1 : []), ...streams, ...operations];
  const serving = { log, metrics, auth, newRequestId: createIds(), isStopping: () => isStopping, allowOrigins, turns };
  const pages = [
    ...documentRoutes(served, version),
    ...inboxScriptRoutes(),
    ...demoRoutes({ isDevelopment: options.isDevelopment }),
  ];
  const app = createServer(serving, [...served, ...pages]);
  // Browsers open connections in advance. One on which nothing was asked yet is not idle to Node.
  const silent = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    silent.add(socket);
    socket.once("close", () => silent.delete(socket));
  });
  app.server.on("request", ({ socket }) => silent.delete(socket));
  const url = await app.listen({ host, port });
  const flushing = setInterval(() => void flushUses(auth, log), FLUSH_USES_MS);

  return {
    url,
    async stop(drainMs) {
      isStopping = true;
      clearInterval(flushing);
      // Stops listening only: on a connection that seems idle the next request may be on its way. It is still
      // answered, with `connection: close`.
      const closed = new Promise<void>((resolve) => Server.prototype.close.call(app.server, () => resolve()));
      const closeIdle = () => {
        app.server.closeIdleConnections();
        for (const socket of silent) socket.destroy();
      };
      // A timer that is late, since the process was busy, comes before what arrived meanwhile; an immediate after it.
      const reap = setInterval(() => setImmediate(closeIdle), LINGER_MS);
      const cut = setTimeout(() => app.server.closeAllConnections(), drainMs);
      await hub?.drain(drainMs);
      await closed;
      clearTimeout(cut);
      clearInterval(reap);
      await app.close();
      await flushUses(auth, log);
    },
  };
}

/** When a key was last used is worth little: if the database is away, it is not written. */
const flushUses = (auth: Authenticate, log: Logger): Promise<void> =>
  auth.flushUses().catch((error: unknown) => log.debug({ err: error }, "last uses of keys not written"));
