// Ready work in SQS: a standard queue for each lane, whose messages are slices of handoffs.
//
// SQS gives messages twice, in any order, and says nothing of what is in them before they have come. All of that is harmless, as entries are hints; but
// lanes are the only order there is. What comes and is for none who take here goes to PostgreSQL, which can be asked for some only.
// State: what has come and was not taken (lane.ts), and which handoffs were offered lately.

import type { Handoff } from "#domain/handoff.ts";
import { PRIORITIES } from "#domain/priority.ts";
import {
  type Engine,
  type Entry,
  entriesOf,
  isWithin,
  NOTHING,
  singly,
  type Take,
  type TakeAsk,
} from "#queue/engine.ts";
import { bringSomeHome } from "#queue/postgres/handoffs.ts";
import type { Queryable } from "#store/connection/database.ts";
import { Lane, type Waiting } from "./lane.ts";
import { Offered } from "./offered.ts";
import type { Queues } from "./queues.ts";
import { Sending } from "./send.ts";
import { createTend, type Patience } from "./tend.ts";

/** Longer than any statement that claims, and than what waits here for one. */
const VISIBLE_MS = 30_000;

export type SqsEngineOptions = {
  queues: Queues;
  /** For what comes back, and for what was offered. */
  db: Queryable;
  monotonic: () => number;
  visibleMs?: number;
  patience?: Patience;
  /** Something that was here waits in PostgreSQL now. */
  onHome?: () => void;
  /** It could not be brought there, or was not noted: it comes again. */
  onTrouble?: (error: unknown) => void;
  /** There was a message in the queue of a lane that we did not write. It is deleted. */
  onForeign?: (rank: number) => void;
};

export type SqsEngine = Engine & {
  /** Of a lane: messages that others do not see, and entries in them that nobody has taken. */
  standing(rank: number): { held: number; waiting: number };
  /** What has come and was not taken is others' at once. */
  close(): Promise<void>;
};

const nothing = () => undefined;

export function createSqsEngine(options: SqsEngineOptions): SqsEngine {
  const { queues, db, monotonic, visibleMs = VISIBLE_MS, patience } = options;
  const { onHome = nothing, onTrouble = nothing, onForeign = nothing } = options;
  let wake: () => void = nothing;
  const onArrived = () => wake();
  const lanes = PRIORITIES.map((_, rank) => new Lane({ queues, rank, visibleMs, monotonic, onArrived, onForeign }));
  const senders = PRIORITIES.map((_, rank) => new Sending(queues, rank));
  const laneOf = (rank: number) => lanes[rank] as Lane;
  const offered = new Offered(db, onTrouble);
  const tidying = setInterval(() => {
    for (const lane of lanes) void bringHome(lane, lane.tidy());
  }, visibleMs / 10).unref();

  const send = (handoff: Handoff): Promise<void> =>
    (senders[handoff.rank] as Sending).offer(singly(entriesOf(handoff)));

  async function offer(handoffs: readonly Handoff[]): Promise<number[]> {
    const offers = await Promise.allSettled(
      handoffs.map(async (handoff) => {
        await send(handoff);
        offered.add(handoff.number);
      }),
    );
    for (const one of offers) if (one.status === "rejected") throw one.reason;
    return [];
  }

  async function bringHome(lane: Lane, some: readonly Waiting[]): Promise<void> {
    if (some.length === 0) return;
    try {
      const home = await bringSomeHome(
        db,
        some.map(({ entry }) => entry),
      );
      lane.handled(some);
      if (home > 0) onHome();
    } catch (error) {
      // Not put back: it comes again by itself, when the database may be.
      onTrouble(error);
    }
  }

  async function take({ count, ranks, notTenants, ...bounds }: TakeAsk): Promise<Take> {
    const refused = new Set(notTenants);
    const judge = (entry: Entry) => (!isWithin(bounds, entry) ? "home" : refused.has(entry.tenant) ? "pass" : "take");
    const all: Waiting[] = [];
    for (const rank of ranks) {
      if (all.length === count) break;
      const { taken, homeward } = laneOf(rank).take(count - all.length, judge);
      all.push(...taken);
      await bringHome(laneOf(rank), homeward);
    }
    if (all.length === 0) return NOTHING;
    return {
      entries: all.map(({ entry }) => entry),
      hasMore: all.length === count,
      done(left, ended) {
        offered.forget(ended);
        const isLeft = new Set(left);
        for (const lane of lanes) {
          const mine = all.filter(({ entry }) => entry.rank === lane.rank);
          if (mine.length === 0) continue;
          lane.putBack(mine.filter(({ entry }) => isLeft.has(entry)));
          lane.handled(mine.filter(({ entry }) => !isLeft.has(entry)));
        }
      },
    };
  }

  return {
    name: "sqs",
    offer,
    take,
    tend: createTend({ queues, send, monotonic, ...patience }),
    watch(listener) {
      wake = listener;
    },
    standing: (rank) => ({ held: laneOf(rank).held, waiting: laneOf(rank).waiting }),
    async close() {
      clearInterval(tidying);
      await Promise.all([offered.close(), ...lanes.map((lane) => lane.close())]);
    },
  } satisfies SqsEngine;
}
