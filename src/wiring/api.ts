// The api role, wired: the routes, and what each of them needs. Health and metrics are served by every process, the rest of
// the routes only by those that have the role.

import { createProviderHealth } from "#channels/provider-health.ts";
import { createIds } from "#domain/ids.ts";
import type { EventStreams } from "#following/streams.ts";
import type { Waits } from "#following/waits.ts";
import { type Authenticate, createAuthenticate } from "#http/core/authenticate.ts";
import type { Route } from "#http/core/route.ts";
import { createServer } from "#http/core/server.ts";
import type { RequestTurns } from "#http/core/turns.ts";
import { mcpRoutes } from "#http/mcp/mcp.ts";
import { dashboardRoutes } from "#http/pages/dashboard.ts";
import { demoRoutes } from "#http/pages/demo-page.ts";
import { documentRoutes } from "#http/pages/documents.ts";
import { inboxScriptRoutes } from "#http/pages/inbox-script.ts";
import { readingRoutes } from "#http/pages/reading.ts";
import { accountRoutes } from "#http/routes/accounts.ts";
import { auditRoutes } from "#http/routes/audit.ts";
import { callbackRoutes } from "#http/routes/callbacks.ts";
import { changeRoutes } from "#http/routes/changes.ts";
import { connectorRoutes } from "#http/routes/connectors.ts";
import { costRoutes } from "#http/routes/costs.ts";
import { deadLetterRoutes } from "#http/routes/dead-letters.ts";
import { devRoutes } from "#http/routes/dev.ts";
import { devClockRoutes } from "#http/routes/dev-clock.ts";
import { devFaultRoutes } from "#http/routes/dev-faults.ts";
import { devMessageRoutes } from "#http/routes/dev-message.ts";
import { deviceRoutes } from "#http/routes/devices.ts";
import { endpointRoutes } from "#http/routes/endpoints.ts";
import { eventRoutes } from "#http/routes/events.ts";
import { explainRoutes } from "#http/routes/explain.ts";
import { houseRoutes } from "#http/routes/house.ts";
import { inboxRoutes } from "#http/routes/inbox.ts";
import { inboxSessionRoutes } from "#http/routes/inbox-sessions.ts";
import { inboxStreamRoutes } from "#http/routes/inbox-stream.ts";
import { keyRoutes } from "#http/routes/keys.ts";
import { notificationRoutes } from "#http/routes/notifications.ts";
import { operationRoutes } from "#http/routes/operations.ts";
import { pauseRoutes } from "#http/routes/pauses.ts";
import { planRoutes } from "#http/routes/plans.ts";
import { providerRoutes } from "#http/routes/providers.ts";
import { queueRoutes } from "#http/routes/queue.ts";
import { queueMoveRoutes } from "#http/routes/queue-moves.ts";
import { refusalRoutes } from "#http/routes/refusals.ts";
import { reminderScopeRoutes } from "#http/routes/reminder-scopes.ts";
import { reminderRoutes } from "#http/routes/reminders.ts";
import { replayRoutes } from "#http/routes/replay.ts";
import { reportRoutes } from "#http/routes/reports.ts";
import { scheduleRoutes } from "#http/routes/schedules.ts";
import { sendRoutes } from "#http/routes/sends.ts";
import { sessionRoutes } from "#http/routes/sessions.ts";
import { statisticsRoutes } from "#http/routes/statistics.ts";
import { suppressionRoutes } from "#http/routes/suppressions.ts";
import { templateRoutes } from "#http/routes/templates.ts";
import { tenantRoutes } from "#http/routes/tenants.ts";
import { userRoutes } from "#http/routes/users.ts";
import { workerRoutes } from "#http/routes/workers.ts";
import type { Hub } from "#inbox/hub.ts";
import { createSubscriberTokens, type SubscriberTokens } from "#inbox/tokens.ts";
import { readLag } from "#record/callback-lag.ts";
import { readFeedStanding } from "#record/feed-standing.ts";
import { type RunningApi, startApi } from "#roles/api.ts";
import { FOLLOWER } from "#steps/calls/make-callbacks.ts";
import { type Acknowledge, createAcknowledge } from "#steps/manage/acknowledge.ts";
import { readTrouble } from "#store/archiving.ts";
import { CallbackFacts } from "#telemetry/callback-facts.ts";
import { createHealth } from "#telemetry/health.ts";
import type { OpenedAcceptances, Wakes } from "./accept.ts";
import { type Base, connectorsOf } from "./base.ts";
import type { Channels } from "./channels.ts";
import { SILENT_MS } from "./member.ts";

/** What the process has for whoever asks. */
export type Served = OpenedAcceptances & {
  channels: Channels;
  wakes: Wakes;
  turns: RequestTurns;
  /** The streams of inboxes, in a process that has the role. */
  hub: Hub | undefined;
  /** Those who wait for what happens. */
  events: EventStreams;
  /** Those who wait for the mailbox. */
  waits: Waits;
  version: string;
};

type Doors = { auth: Authenticate; tokens: SubscriberTokens; acknowledge: Acknowledge };

export async function openApi(base: Base, served: Served): Promise<RunningApi> {
  const { config, database, clock, queue, stalls, facts, metrics, log, siblings } = base;
  const { areSendsRefused, turns, hub, events, waits, version } = served;
  let isStopping = false;
  const tokens = createSubscriberTokens(database.authenticate, base.monotonic);
  const auth = createAuthenticate({
    db: database.authenticate,
    tokens,
    fixedKey: config.apiKey,
    now: clock.nowMs,
    trueNow: clock.trueMs,
    onFailure: () => facts.loginFailed(),
  });
  const doors: Doors = { auth, tokens, acknowledge: createAcknowledge(database.small, base.hints.inboxes) };
  const health = createHealth({
    db: database.own,
    clock,
    isDevelopment: config.development,
    hasReady: () => queue.hasReady(database.own),
    callbackLagMs: () => readLag(database.own, FOLLOWER),
    feed: () => readFeedStanding(database.own),
    connectors: connectorsOf(config, database),
    areSendsRefused,
    standing: siblings?.standing,
    stalls,
    redis: base.redis?.standing,
    archive: config.archive && (() => readTrouble(database.own)),
  });
  const operations = operationRoutes({
    health,
    figures: siblings?.figures ?? (() => metrics.registry.metrics()),
    isStopping: () => isStopping,
    uptimeSeconds: siblings?.uptimeSeconds ?? process.uptime,
  });
  const routes = [
    ...(config.roles.includes("api") ? v1Routes(base, served, doors) : []),
    ...streamRoutes(base, served, doors),
    ...operations,
  ];
  const onToolError = (error: unknown) => log.error({ err: error }, "a tool of /mcp failed");
  const pages = [
    ...documentRoutes(routes, version),
    ...readingRoutes({ hasMcp: config.mcp }),
    ...(config.mcp
      ? mcpRoutes({ routes, turns, db: database.small, version, nowMs: clock.nowMs, onError: onToolError })
      : []),
    ...inboxScriptRoutes(),
    ...(config.roles.includes("api") ? dashboardRoutes() : []),
    // With an embedded database there is a page to try things out.
    ...demoRoutes({ isDevelopment: config.databaseUrl === undefined }),
  ];
  const { host, port, allowOrigins, publicUrl } = config;
  const isToldToStop = () => isStopping;
  const serving = {
    log,
    metrics,
    auth,
    newRequestId: createIds(),
    isStopping: isToldToStop,
    allowOrigins,
    publicUrl,
    turns,
  };
  return startApi({
    app: createServer(serving, [...routes, ...pages]),
    host,
    port,
    drain: async (withinMs) => {
      events.drain();
      waits.drain();
      await hub?.drain(withinMs);
    },
    // When a key was last used is worth little: if the database is away, it is not written.
    flush: () => auth.flushUses().catch((error: unknown) => facts.usesUnwritten(error)),
    onStop: () => {
      isStopping = true;
    },
  });
}

function v1Routes(base: Base, { channels, acceptances, wakes, turns, events, waits }: Served, doors: Doors): Route[] {
  const { config, database, clock, queue, limit, retry, facts, monotonic, log, figures } = base;
  const { small: db, large } = database;
  const { now } = clock;
  const newId = createIds(clock.nowMs);
  const { wake, plan } = wakes;
  const { providers, templates, noticeTexts, publicHttp: http, reload } = channels;
  const { apiKey, secretKeys, retentionDays, publicUrl } = config;
  const callbackFacts = new CallbackFacts(log, figures.callbacks);
  const { auth, tokens, acknowledge } = doors;
  return [
    ...sendRoutes({ acceptances }),
    ...notificationRoutes({ db, large }),
    ...eventRoutes({ db, turns, streams: events, auth }),
    ...changeRoutes({ pool: db, queue, now, wake, plan }),
    ...scheduleRoutes({ pool: db, noticeTexts, now, plan }),
    ...reminderRoutes({ pool: db, noticeTexts, now, plan }),
    ...reminderScopeRoutes({ pool: db, plan }),
    ...callbackRoutes({ large, queue, wake, newId, plan }),
    ...replayRoutes({ pool: large, newId, retentionDays, facts: callbackFacts }),
    ...deadLetterRoutes({ large, queue, wake, newId, plan }),
    ...planRoutes({ pool: db, large, providers, newId, monotonic, plan }),
    ...templateRoutes({ pool: db, templates }),
    ...explainRoutes({ db, limit, providers, templates, retry, facts, monotonic, now }),
    ...deviceRoutes({ db }),
    ...suppressionRoutes({ pool: db }),
    ...providerRoutes({ db, large, turns, providers, health: createProviderHealth(monotonic), limit, now }),
    ...accountRoutes({ pool: db, providers, secretKeys, reload }),
    ...endpointRoutes({ pool: db, http, secretKeys, newId, clock, monotonic }),
    ...connectorRoutes({ pool: db, configured: { source: config.sources, sink: config.sinks } }),
    ...refusalRoutes({ large }),
    ...reportRoutes({ db, providers, publicUrl, traces: base.traces }),
    ...costRoutes({ db: large, now }),
    ...devRoutes({ pool: db, large, turns, waits }),
    ...devMessageRoutes({ pool: db }),
    ...(config.development
      ? [
          ...devClockRoutes({ pool: db, clock, tell: base.hints.clock, plan }),
          ...devFaultRoutes({ pool: db, providers }),
        ]
      : []),
    ...inboxRoutes({ db, acknowledge }),
    ...inboxSessionRoutes({ tokens, publicUrl, now }),
    ...queueRoutes({ db: large, queue, silentMs: SILENT_MS }),
    ...queueMoveRoutes({ pool: db, silentMs: SILENT_MS }),
    ...statisticsRoutes({ db: large, now }),
    ...pauseRoutes({ pool: db, queue, providers, plan }),
    ...tenantRoutes({ pool: db }),
    ...workerRoutes({ db, silentMs: SILENT_MS }),
    ...houseRoutes({ db: large }),
    ...userRoutes({ pool: db, large, plan }),
    ...auditRoutes({ large }),
    ...sessionRoutes({ db, pool: db, fixedKey: apiKey, forget: auth.forgetSession, publicUrl }),
    ...keyRoutes({ pool: db, auth, hasFixedKey: apiKey !== undefined, now }),
  ];
}

function streamRoutes({ facts }: Base, { hub, turns }: Served, { acknowledge }: Doors): Route[] {
  if (!hub) return [];
  const inTurn: Acknowledge = (actor, userId, mark) =>
    turns.small(actor.tenant, () => acknowledge(actor, userId, mark));
  return inboxStreamRoutes({ hub, acknowledge: inTurn, onError: (error) => facts.acknowledgementFailed(error) });
}
