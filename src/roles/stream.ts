// The stream role: finds out what is new in the inboxes that somebody reads, and tells them.
//
// One connection listens for hints; whatever becomes of them, it looks every second. A look asks which inboxes changed since
// the last one, which costs little however many streams are open, and reads only those that somebody here reads.

import { createHub, type Hub, type HubOptions } from "#inbox/hub.ts";
import type { Clock } from "#store/connection/clock.ts";
import type { Queryable } from "#store/connection/database.ts";
import { listenToInboxes } from "#store/connection/inbox-hint.ts";
import type { OnLost } from "#store/connection/listen.ts";
import { lookForNews, readNews } from "#store/inbox-news.ts";
import type { Facts } from "#telemetry/facts.ts";
import type { StreamMetrics } from "#telemetry/stream-metrics.ts";
import { createNap } from "#timing/nap.ts";

export type StreamRoleOptions = {
  db: Queryable;
  clock: Pick<Clock, "nowMs">;
  /** For a reader that comes, or fell behind. */
  read: HubOptions["read"];
  url: string;
  maxStreams: number;
  perUser: number;
  /** Hints are missed until it listens again. */
  onLost?: OnLost;
  metrics?: StreamMetrics;
  facts: Facts;
  limits?: HubOptions["limits"];
};

export type RunningStream = { hub: Hub; stop(): Promise<void> };

const POLL_MS = 1_000;
const TICK_MS = 500;
/** Inboxes read by one statement. */
const ABREAST = 100;

export function startStream(options: StreamRoleOptions): RunningStream {
  const { db, clock, read, url, maxStreams, perUser, onLost, metrics, facts, limits } = options;
  const hub = createHub({
    read,
    maxStreams,
    perUser,
    now: clock.nowMs,
    random: Math.random,
    ...(limits && { limits }),
    ...(metrics && { onEnd: (reason) => metrics.ended.inc({ reason }), onEvents: (n) => metrics.told.inc(n) }),
  });
  metrics?.watchOpen(hub.size);
  const nap = createNap();
  let isStopped = false;
  let last: string | undefined;

  async function round(): Promise<void> {
    if (hub.size() === 0) {
      // Whoever comes next reads for itself; the look after that begins anew.
      last = undefined;
      return;
    }
    const look = await lookForNews(db, last);
    if (look.isOlder) {
      facts.streamsBeganAnew();
      hub.cutAll();
    }
    const isFirst = last === undefined;
    const readings = hub.readings(isFirst ? undefined : look.changed);
    for (let from = 0; from < readings.length; from += ABREAST) {
      const some = readings.slice(from, from + ABREAST);
      await hub.tell(some, await readNews(db, some));
    }
    // Only now: had a reading failed, the same changes would have to be found again.
    last = look.snapshot;
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      nap.wasWoken();
      await round().catch((error: unknown) => facts.newsUnread(error));
      await nap.sleep(POLL_MS);
    }
  }

  const running = run();
  const ticking = setInterval(() => void hub.tick(), TICK_MS);
  const listening = listenToInboxes(
    url,
    (inboxes) => {
      if (inboxes === undefined || inboxes.some(hub.has)) nap.wake();
    },
    onLost,
  );

  return {
    hub,
    async stop() {
      isStopped = true;
      clearInterval(ticking);
      nap.wake();
      await listening.stop();
      await running;
    },
  };
}
