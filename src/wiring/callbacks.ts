// Callbacks, wired: the caller that makes them of what happened, and their worker. That is the same as that of notifications, with slots, a
// hand and commits of its own, so that no callback ever stands in the way of a notification.

import { callbackProvider } from "#channels/callback/callback.ts";
import { Endpoints } from "#channels/callback/endpoints.ts";
import { createIds } from "#domain/ids.ts";
import { CALLBACK_RANK } from "#domain/priority.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import { endpointGuard } from "#guards/endpoint-guard.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { areFirst } from "#queue/postgres/lines.ts";
import { startCaller } from "#roles/caller.ts";
import { type RunningWorker, startWorker } from "#roles/worker.ts";
import { Aftercare } from "#steps/calls/aftercare.ts";
import { disableEndpoint } from "#steps/calls/disable-endpoint.ts";
import { makeCallbacks } from "#steps/calls/make-callbacks.ts";
import { resealEndpoints } from "#steps/calls/reseal-endpoints.ts";
import type { World } from "#steps/walk/world.ts";
import { readEndpointKeys } from "#store/secrets.ts";
import { CallbackFacts } from "#telemetry/callback-facts.ts";
import { createPublicHttp } from "#wire/public-only.ts";
import type { Base } from "./base.ts";
import type { Member } from "./member.ts";
import type { Stop } from "./undo.ts";
import { openSettlements, sendingOf } from "./worker.ts";

/** One commit at a time leaves room for those that notifications wait for. */
const SETTLE_ABREAST = 1;
/** Nobody is told that one is due: an instant may be missed by this much. */
const POLL_MS = 200;

/** What they stand on is undone by `undo`, after the loops have stopped. */
export async function openCallbacks(
  base: Base,
  world: World,
  member: Member,
  loops: Stop[],
  undo: Stop[],
): Promise<void> {
  const { config, database, clock, queue, monotonic, log, figures } = base;
  const { retentionDays, drainMs } = config;
  const pool = database.own;
  const secretKeys = await readEndpointKeys(pool, config.secretKeys);
  await resealEndpoints(pool, secretKeys);
  const newId = createIds(clock.nowMs);
  const facts = new CallbackFacts(log, figures.callbacks);
  const wake = () => worker.wake();
  const aftercare = new Aftercare({
    db: pool,
    monotonic,
    facts,
    disable: (tenant, endpoint, reason) => disableEndpoint({ pool, newId, facts }, tenant, endpoint, reason),
    wake,
  });
  const worker = openWorker(base, world, member, { secretKeys, aftercare }, undo);
  const caller = startCaller({
    round: () => makeCallbacks({ pool, newId, secretKeys, retentionDays, facts }),
    hasBacklog: () => queue.hasReady(pool),
    onMade(count) {
      facts.made(count);
      wake();
    },
    onFailure: (error) => facts.roundFailed(error),
    monotonic,
  });
  loops.push(caller.stop, () => worker.stop(drainMs));
}

function openWorker(
  base: Base,
  world: World,
  member: Member,
  { secretKeys, aftercare }: { secretKeys: SecretKeys; aftercare: Aftercare },
  undo: Stop[],
): RunningWorker {
  const { config, database, clock, monotonic, facts } = base;
  const { allowAddresses, callbackConcurrency, wayPercent } = config;
  const endpoints = new Endpoints(database.own, secretKeys, monotonic, clock.now);
  const http = createPublicHttp({ allow: allowAddresses });
  undo.push(http.close);
  const route = [callbackProvider({ http, endpoints, now: clock.trueMs })];
  const { locked: _, ...rest } = world;
  return startWorker({
    id: member.id,
    // How far it has come in its lanes is a queue's own: theirs is nothing to the other.
    queue: createPostgresQueue(database.work, monotonic, { onGone: (ids) => facts.gone(ids) }),
    world: {
      ...rest,
      providers: { route: () => route },
      guard: endpointGuard({ ...rest, endpoints, onFailure: (error) => facts.unread(error) }),
      settlements: openSettlements(base, SETTLE_ABREAST),
      callbacks: {
        endpoints,
        areFirst: (lined) => areFirst(database.own, lined),
        nowMs: clock.nowMs,
        settled: (settled) => aftercare.settled(settled),
      },
    },
    ranks: [CALLBACK_RANK],
    concurrency: callbackConcurrency,
    wayPart: wayPercent / 100,
    pollMs: () => POLL_MS,
    ...sendingOf(base),
  });
}
