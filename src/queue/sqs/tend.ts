// Keeps SQS in step with what was handed to it: what nobody offered, because of a crash or because SQS was away, what was offered so long ago that SQS is
// about to forget it, and what it has lost.
//
// SQS cannot be asked what it has, but how much. Where the queue of a lane is empty and stays so, whatever is open of that lane and was offered before is
// lost: somebody purged the queue, or deleted it. SQS counts by and by, hence the patience; who is impatient offers twice, which is harmless.
// State: how far the round has come, and since when which lane is empty.

import type { Handoff } from "#domain/handoff.ts";
import type { Engine } from "#queue/engine.ts";
import { listOffered, noteOffered, type OfferedHandoff, readHandoffs } from "#queue/postgres/handoffs.ts";
import type { Queryable } from "#store/connection/database.ts";
import { at } from "#wire/json-answer.ts";
import { SqsError } from "#wire/sqs.ts";
import type { Queues } from "./queues.ts";

export type Patience = {
  /** So long after it was offered, what is open is offered again whatever SQS has. */
  dueMs?: number;
  /** So long after it was offered, it may be lost; and it is if the lane has been empty for so long. */
  oldMs?: number;
  emptyMs?: number;
};

export type TendOptions = Patience & {
  queues: Queues;
  send: (handoff: Handoff) => Promise<void>;
  monotonic: () => number;
};

const DAY_MS = 86_400_000;
const OLD_MS = 300_000;
const EMPTY_MS = 60_000;
const COUNTS = [
  "ApproximateNumberOfMessages",
  "ApproximateNumberOfMessagesNotVisible",
  "ApproximateNumberOfMessagesDelayed",
];

export function createTend(options: TendOptions): Engine["tend"] {
  const { queues, send, monotonic, dueMs = DAY_MS, oldMs = OLD_MS, emptyMs = EMPTY_MS } = options;
  const lanes = new Map<number, { lookedAt: number; emptySince: number | undefined }>();
  let lookedAt = 0;

  /** Asked no more often than it may have changed. */
  async function isEmpty(rank: number): Promise<boolean> {
    const now = monotonic();
    let lane = lanes.get(rank);
    if (!lane || now - lane.lookedAt >= emptyMs / 3) {
      const answer = await queues.ask(rank, "GetQueueAttributes", { AttributeNames: COUNTS });
      const waits = COUNTS.some((count) => at(answer, "Attributes", count) !== "0");
      lane = { lookedAt: now, emptySince: waits ? undefined : (lane?.emptySince ?? now) };
      lanes.set(rank, lane);
    }
    return lane.emptySince !== undefined && now - lane.emptySince >= emptyMs;
  }

  async function offerAgain(db: Queryable, page: readonly OfferedHandoff[]): Promise<number> {
    const numbers: number[] = [];
    for (const { number, rank, isDue, isOld } of page)
      if (isDue || (isOld && (await isEmpty(rank)))) numbers.push(number);
    if (numbers.length === 0) return 0;
    const handoffs = await readHandoffs(db, numbers);
    await Promise.all(handoffs.map(send));
    await noteOffered(db, numbers);
    return handoffs.reduce((sum, { size }) => sum + size, 0);
  }

  async function* tend(db: Queryable, limit: number): AsyncGenerator<number> {
    if (queues.awayMs() > 0) return;
    yield await offerAgain(db, await listOffered(db, "sqs", { after: undefined, limit, dueMs, oldMs }));
    // A page of all each time; but on while there is something to offer, as after an outage.
    for (let offered = 1; offered > 0; yield offered) {
      const page = await listOffered(db, "sqs", { after: lookedAt, limit, dueMs, oldMs });
      offered = await offerAgain(db, page);
      lookedAt = page.length < limit ? 0 : (page.at(-1)?.number ?? 0);
      if (lookedAt === 0) return;
    }
  }

  return async function* (db, size) {
    try {
      yield* tend(db, size);
    } catch (error) {
      // SQS is away: that is told elsewhere, and it is tried again soon.
      if (!(error instanceof SqsError)) throw error;
    }
  };
}
