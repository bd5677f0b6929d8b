// Takes what is ready out of its lanes: as one row of claims, or several where what was asked first has less than its share.
//
// State: where the lane with the backlog begins, and whose turn is next.

import { setTimeout } from "node:timers/promises";
import type { Claimed, Lease } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import type { Queue, Takes } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Chunk, CLAIM, type Missed, MOST_BYTES } from "./claim-statement.ts";
import type { Claim } from "./handle.ts";
import { createBacklog, type Head, type Heads } from "./head.ts";
import { createRounds, type Rounds } from "./rounds.ts";
import type { Gone, LetGo } from "./settle.ts";
import { Lines } from "./turns.ts";

/** Where others had just locked all of it: after so long each time, it looks again, with those whose turn is next. What others claim is soon committed. */
const AGAIN_MS = [0, 2, 4, 8, 16];
/** Of how many flows of a lane a claim takes something. Where those have less than their share, the rest is asked of so many times more. */
const WIDTH = 200;
const WIDER = 4;

const ALL: Takes = { ranks: PRIORITIES.map((_, rank) => rank) };

export function createClaim(db: Queryable, monotonic: () => number, letGo: LetGo): Queue["claim"] {
  const backlog = createBacklog();
  const rounds = createRounds();

  /** One statement. */
  async function look(worker: number, count: number, leaseMs: number, takes: Takes, width: number) {
    // Read before the statement starts: our idea of the lease's end is then never later than the database's.
    const claimedAt = monotonic();
    const known = backlog.heads(claimedAt);
    const { rows } = await db.query<Chunk | Missed>({
      name: "carillon-claim",
      text: CLAIM,
      values: [worker, count, leaseMs, ...turnsOf(takes, rounds, width), ...headsOf(known, rounds)],
    });
    const { flows = [], isOver = true, dues } = rows[0] ?? {};
    const chunks = rows.filter((row): row is Chunk => row.token !== null);
    const size = chunks.reduce((sum, { seqs }) => sum + seqs.length, 0);
    const bytes = chunks.reduce((sum, chunk) => sum + (chunk.bytes ?? 0), 0);
    const { token = 0, now: claimedAtMs = 0 } = chunks[0] ?? {};
    const handle: Claim = { token, size };
    const meanBytes = size > 0 ? bytes / size : 0;
    const endsAt = claimedAt + leaseMs;
    const lease: Lease = { handle, meanBytes, endsAt, claimedAtMs, claimedAt, answeredAt: monotonic() };

    const lines = new Lines(flows, rounds, dues ?? {});
    const gone = handOut(chunks, lease, lines);
    const attempts = lines.inTurn();
    const last = attempts.at(-1);
    for (const turn of lines.ended(attempts)) rounds.ended(turn);
    const isFull = size === count;
    if (!known || takes.ranks.includes(known.rank))
      backlog.found(known, claimedAt, isFull && last ? lines.heads(last.rank) : undefined, takes.notTenants);
    const hasMore = !isFull && bytes < MOST_BYTES && (!isOver || gone.length > 0 || lines.haveMore());
    return { attempts, gone, hasMore, isMissed: size === 0 && flows.length > 0 };
  }

  return async (worker, count, leaseMs, takes = ALL) => {
    let { attempts, gone, hasMore, isMissed } = await look(worker, count, leaseMs, takes, WIDTH);
    for (const waitMs of AGAIN_MS) {
      if (!isMissed) break;
      if (waitMs > 0) await setTimeout(waitMs);
      ({ attempts, gone, hasMore, isMissed } = await look(worker, count, leaseMs, takes, WIDTH));
    }
    for (let width = WIDER * WIDTH; hasMore && !isMissed; width *= WIDER) {
      const more = await look(worker, count - attempts.length - gone.length, leaseMs, takes, width).catch(
        () => undefined,
      );
      // What was claimed is not given up for that.
      if (!more) break;
      attempts.push(...more.attempts);
      gone.push(...more.gone);
      ({ hasMore, isMissed } = more);
    }
    await letGo(gone);
    return attempts;
  };
}

/** Puts what was claimed where it belongs; answers with what is gone from the record. */
function handOut(chunks: readonly Chunk[], lease: Lease, lines: Lines): Gone[] {
  const gone: Gone[] = [];
  let place = 0;
  for (const chunk of chunks) {
    for (const [n, request] of chunk.requests.entries()) {
      if (request) lines.put(attemptIn(chunk, n, request, lease, place));
      else gone.push({ attempt: { id: chunk.ids[n] as string, lease, handle: place } });
      place++;
    }
  }
  return gone;
}

function turnsOf(
  { ranks, channels, tenants, notTenants = [], regions }: Takes,
  rounds: Rounds,
  width: number,
): unknown[] {
  const turns = ranks.map((rank) => rounds.next(rank));
  const firsts = turns.map(({ tenant }) => tenant);
  return [ranks, firsts, turns.map(({ spent }) => spent), width, channels, tenants, notTenants, regions];
}

/** In the order of the walk, which begins with whose turn it is. */
function headsOf({ rank = 0, heads = [] }: Partial<Heads> = {}, rounds: Rounds): unknown[] {
  const first = rounds.next(rank).tenant;
  const inOrder = [...heads.filter(({ tenant }) => tenant >= first), ...heads.filter(({ tenant }) => tenant < first)];
  const column = (name: keyof Head) => inOrder.map((head) => head[name]);
  return [heads.length > 0 ? rank : undefined, column("tenant"), column("pool"), column("seq")];
}

function attemptIn(chunk: Chunk, n: number, request: NotificationRequest, lease: Lease, place: number): Claimed {
  return {
    seq: chunk.seqs[n] as number,
    lease,
    handle: place,
    tenant: chunk.tenants[n] as number,
    id: chunk.ids[n] as string,
    rank: chunk.ranks[n] as number,
    number: chunk.numbers[n] as number,
    request,
    sinceMs: chunk.sinces[n] as number,
    expiresAtMs: chunk.expiries[n] ?? undefined,
  };
}
