// Finds out what is new in the feed, once for all who wait for it in this process, and wakes those whom it is about.
//
// It looks every half second, and only while somebody waits: to be woken by each commit would cost every commit a lock.

import type { Position } from "#domain/fact.ts";
import { createEventStreams, type EventStreams } from "#following/streams.ts";
import { readFeedNews } from "#record/feed-news.ts";
import { findFeedEnd } from "#record/feed-places.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Facts } from "#telemetry/facts.ts";
import { createNap } from "#timing/nap.ts";

export type RunningFollowing = { streams: EventStreams; stop(): Promise<void> };

const POLL_MS = 500;

export function startFollowing(db: Queryable, monotonic: () => number, facts: Facts): RunningFollowing {
  const streams = createEventStreams(monotonic, Math.random);
  const nap = createNap();
  let isStopped = false;
  let last: Position | undefined;

  /** Answers whether there is more. */
  async function look(): Promise<boolean> {
    if (streams.size() === 0) {
      last = undefined;
      return false;
    }
    if (last === undefined) {
      last = await findFeedEnd(db);
      // Who came since then has perhaps read less.
      streams.wake();
      return false;
    }
    const news = await readFeedNews(db, last);
    last = news?.next;
    if (news) streams.tell(news.tenants, news.next);
    else streams.wake();
    return news?.isCut ?? true;
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      nap.wasWoken();
      const hasMore = await look().catch((error: unknown) => {
        facts.newsUnread(error);
        return false;
      });
      if (!hasMore) await nap.sleep(POLL_MS);
    }
  }

  const running = run();
  const ticking = setInterval(streams.tick, POLL_MS);
  return {
    streams,
    async stop() {
      isStopped = true;
      clearInterval(ticking);
      nap.wake();
      await running;
    },
  };
}
