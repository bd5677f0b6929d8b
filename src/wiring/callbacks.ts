// The worker of callbacks, wired: the same as that of notifications, with slots, a hand and commits of its own, so that no callback ever
// stands in the way of a notification.

import { CALLBACK_RANK } from "#domain/priority.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { type RunningWorker, startWorker } from "#roles/worker.ts";
import type { World } from "#steps/walk/world.ts";
import type { Base } from "./base.ts";
import type { Member } from "./member.ts";
import { openSettlements, sendingOf } from "./worker.ts";

/** One commit at a time leaves room for those that notifications wait for. */
const SETTLE_ABREAST = 1;
/** Nobody is told that one is due: an instant may be missed by this much. */
const POLL_MS = 200;

export function openCallbackWorker(base: Base, world: World, member: Member): RunningWorker {
  const { database, monotonic, facts } = base;
  const { callbackConcurrency, wayPercent } = base.config;
  return startWorker({
    id: member.id,
    // How far it has come in its lanes is a queue's own: theirs is nothing to the other.
    queue: createPostgresQueue(database.work, monotonic, (ids) => facts.gone(ids)),
    world: { ...world, settlements: openSettlements(base, SETTLE_ABREAST) },
    ranks: [CALLBACK_RANK],
    concurrency: callbackConcurrency,
    wayPart: wayPercent / 100,
    pollMs: () => POLL_MS,
    ...sendingOf(base),
  });
}
