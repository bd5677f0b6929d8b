// Waits until everything that was written has been read, everything accepted has ended, and every sink stands at the end of the feed.

import { setTimeout as sleep } from "node:timers/promises";
import { readFeed } from "#record/feed.ts";
import { findFollower } from "#record/followers.ts";
import { followerOf } from "#steps/brokers/feed-sink.ts";
import { listConnectors, listOffsets } from "#store/connectors.ts";
import { countWaiting, withClient } from "../journal.ts";
import { endsOf } from "./arrivals.ts";
import type { Stage } from "./stage.ts";

const LOOK_MS = 250;

export async function drain(
  url: string,
  { bootstrap }: Stage,
  topics: readonly string[],
  deadline: number,
): Promise<{ drainedAt: number | undefined; failing: string[] }> {
  const ends = new Map<string, number[]>();
  for (const topic of topics) ends.set(topic, await endsOf(bootstrap, topic));
  for (;;) {
    const failing = [
      ...(await unread(url, ends)),
      ...((await countWaiting(url, "notifications")) > 0 ? ["notifications wait"] : []),
      ...(await sinksBehind(url)),
    ];
    if (failing.length === 0) return { drainedAt: Date.now(), failing };
    if (Date.now() > deadline) return { drainedAt: undefined, failing };
    await sleep(LOOK_MS);
  }
}

const unread = (url: string, ends: ReadonlyMap<string, readonly number[]>): Promise<string[]> =>
  withClient(url, async (db) => {
    const behind: string[] = [];
    const kept = new Map((await listOffsets(db)).map((one) => [`${one.topic}/${one.partition}`, one.next]));
    for (const [topic, its] of ends) {
      for (const [partition, end] of its.entries()) {
        const next = kept.get(`${topic}/${partition}`) ?? 0;
        if (next < end) behind.push(`${topic}/${partition} stands at ${next} of ${end}`);
      }
    }
    return behind;
  });

const sinksBehind = (url: string): Promise<string[]> =>
  withClient(url, async (db) => {
    const behind: string[] = [];
    for (const { name, error } of await listConnectors(db, "sink")) {
      const after = await findFollower(db, [followerOf(name)]);
      const page = after && (await readFeed(db, { after, limit: 1 }));
      const isAtEnd = page?.kind === "page" && page.facts.length === 0 && page.isAtEnd;
      if (!isAtEnd) behind.push(`the sink ${name} is behind: ${error ?? "no error"}`);
    }
    return behind;
  });
