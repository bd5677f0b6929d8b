// What Carillon's own record says at the end.

import { factId, startOf } from "#domain/fact.ts";
import { readEpoch, readFeed } from "#record/feed.ts";
import { listOffsets } from "#store/connectors.ts";
import { withClient } from "../journal.ts";
import type { Accepted, BrokerHistory, Told } from "./history.ts";
import { NEIGHBOUR } from "./neighbour.ts";

type Recorded = Pick<BrokerHistory, "accepted" | "refused" | "refusedFacts" | "offsets" | "facts">;

const PAGE = 1_000;

export const readRecord = (url: string): Promise<Recorded> =>
  withClient(url, async (db) => {
    const { rows: accepted } = await db.query<Accepted>(
      "select id, request->'metadata'->>'key' as key from carillon.records where tenant > 0 and not starts_with(request->'metadata'->>'key', $1)",
      [NEIGHBOUR],
    );
    const { rows: refusals } = await db.query<{ kind: string; place: string }>(
      "select kind, place from carillon.refusals order by id",
    );
    const placesOf = (which: string) => refusals.filter(({ kind }) => kind === which).map(({ place }) => place);
    const facts: Told[] = [];
    for (let after = startOf(await readEpoch(db)); ; ) {
      const page = await readFeed(db, { after, limit: PAGE });
      if (page.kind === "reset") throw new Error(`the feed was reset: ${page.reason}`);
      for (const { type, notificationId, number } of page.facts)
        facts.push({ id: factId({ notificationId, number }), notificationId, number, type });
      if (page.isAtEnd) break;
      after = page.next;
    }
    const offsets = (await listOffsets(db)).map(({ topic, partition, next }) => ({ topic, partition, next }));
    return { accepted, refused: placesOf("source"), refusedFacts: placesOf("sink"), offsets, facts };
  });
