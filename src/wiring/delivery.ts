// The roles that deliver: worker, callbacks, scheduler, keeper. What one of them makes ready wakes the worker beside it at once, and
// those of other processes by a hint.

import type { Lanes } from "#domain/priority.ts";
import { takesAll } from "#domain/worker-takes.ts";
import { listen } from "#store/connection/hint.ts";
import type { Wakes } from "./accept.ts";
import type { Base } from "./base.ts";
import { openCallbacks } from "./callbacks.ts";
import type { Channels } from "./channels.ts";
import { openKeeper } from "./keeper.ts";
import { joinMembers } from "./member.ts";
import { openScheduler } from "./scheduler.ts";
import { openTallies } from "./tallies.ts";
import { type Stop, stopTogether, unwind } from "./undo.ts";
import { openWorker, openWorld } from "./worker.ts";

/** What they are told by those beside them. One stop for all of them is added to `stops`: first the loops, then what they stand on. */
export async function startDelivery(base: Base, channels: Channels, stops: Stop[]): Promise<Wakes> {
  const { config, url, hints, facts } = base;
  const roles = new Set(config.roles);
  const plan = hints.due;
  const carries = config.callbackConcurrency > 0 && (roles.has("worker") || roles.has("callbacks"));
  if (!roles.has("worker") && !carries && !roles.has("scheduler") && !roles.has("keeper"))
    return { wake: hints.ready, plan };

  const loops: Stop[] = [];
  const undo: Stop[] = [];
  stops.push(async () => {
    await stopTogether(loops);
    await unwind(undo);
  });
  const member = await joinMembers(base, undo);
  const world = roles.has("worker") || carries ? await openWorld(base, channels, member, undo) : undefined;
  const worker = world && roles.has("worker") ? await openWorker(base, world, member, undo) : undefined;
  if (worker) {
    loops.push(() => worker.stop(config.drainMs));
    member.tellOf(worker.stats);
    base.engines?.watch(worker.wake);
  }
  if (world && carries) await openCallbacks(base, world, member, loops, undo);
  const wake = (lanes?: Lanes) => {
    worker?.wake(lanes);
    // Our own worker is up and will look; others need not be woken for what it can take.
    if (!worker || !takesAll(config.takes) || worker.isFull()) hints.ready(lanes);
  };
  const scheduler = roles.has("scheduler") ? openScheduler(base, channels, wake) : undefined;
  if (scheduler) loops.push(scheduler.stop);
  if (worker || scheduler) {
    const listening = listen(url, {
      ...(worker && { onReady: worker.wake }),
      ...(scheduler && { onDue: scheduler.hint }),
      onLost: (error) => facts.listenerLost("listen", error),
    });
    loops.push(listening.stop);
  }
  if (roles.has("keeper")) {
    loops.push((await openKeeper(base, member)).stop);
    loops.push(openTallies(base, member).stop);
  }
  return { wake, plan };
}
