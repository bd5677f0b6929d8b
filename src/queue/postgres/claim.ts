// Takes what is ready out of its lanes: as one row of claims, or several where what was asked first has less than its share.
//
// State: where the lane with the backlog begins, and whose turn is next.

import { setTimeout } from "node:timers/promises";
import type { Claimed, Lease } from "#domain/attempt.ts";
import type { EngineName } from "#domain/handoff.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import { type Engine, type Entry, NOTHING, type Take } from "#queue/engine.ts";
import { createPatience } from "#queue/patience.ts";
import type { Queue, Takes } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { createBounds } from "./bounds.ts";
import { type Answered, type Chunk, CLAIM, CLAIM_GIVEN, type Missed, MOST_BYTES } from "./claim-statement.ts";
import { bitsOf, leftOf } from "./given.ts";
import type { Claim } from "./handle.ts";
import { createBacklog, type Head, type Heads } from "./head.ts";
import { createRounds, type Rounds } from "./rounds.ts";
import type { Gone, LetGo } from "./settle.ts";
import { createTurnLength } from "./turn-length.ts";
import { type Flow, Lines } from "./turns.ts";

/** Where others had just locked all of it: after so long each time, it looks again, with those whose turn is next. What others claim is soon committed. */
const AGAIN_MS = [0, 2, 4, 8, 16];
/** Where a look brought nothing, as others had locked it, turns are so much shorter, and so of more tenants. */
const SHORTER = 4;

/** Of so many tenants at least it is seen what they have beside what an engine gives. */
const BESIDE_GIVEN = 200;

type Answer = { rows: (Chunk | Missed)[]; left: readonly Entry[]; ended: readonly number[] };

const ALL: Takes = { ranks: PRIORITIES.map((_, rank) => rank) };

export type ClaimOptions = {
  db: Queryable;
  monotonic: () => number;
  letGo: LetGo;
  engines: readonly Engine[];
  knownMs: number;
  patienceMs: number | undefined;
  onEngineFailed: (engine: EngineName, error: unknown) => void;
};

export function createClaim(options: ClaimOptions): Queue["claim"] {
  const { db, monotonic, letGo, engines, knownMs, patienceMs, onEngineFailed } = options;
  const backlog = createBacklog();
  const rounds = createRounds();
  const turnLength = createTurnLength();
  const known = createBounds(db, monotonic, { knownMs, engines });
  const takers = engines.map((engine) => ({
    name: engine.name,
    take: createPatience(engine, (error) => onEngineFailed(engine.name, error), patienceMs),
  }));
  let asked = 0;

  /** What one of the engines has; while it is away, what is in PostgreSQL is claimed all the same. */
  async function given(count: number, takes: Takes): Promise<Take & { flows: Flow[] }> {
    if (engines.length === 0) return { ...NOTHING, flows: [] };
    const { bounds, weights, inUse } = await known.of(takes);
    // One that is there for something else, and slow at that, is nobody's concern here.
    const used = takers.filter(({ name }) => inUse.includes(name));
    const taker = used[asked++ % used.length];
    if (!taker) return { ...NOTHING, flows: [] };
    const take = await taker.take({ ...bounds, count, next: (rank: number) => rounds.next(rank), weights });
    return { ...take, flows: flowsOf(take, weights) };
  }

  /** One statement. */
  async function look(worker: number, count: number, leaseMs: number, takes: Takes, turn: number): Promise<Found> {
    // Read before the statement starts: our idea of the lease's end is then never later than the database's.
    const take = await given(count, takes);
    const claimedAt = monotonic();
    const from = backlog.heads(claimedAt);
    // What an engine gives comes in turns of one each.
    const length = take.entries.length > 0 ? 1 : Math.ceil(turn);
    // Whole turns, but for the last; and one more where the first has had a part of its own.
    const most = Math.max(Math.ceil(count / turn) + 1, take.entries.length > 0 ? BESIDE_GIVEN : 0);
    const values = [worker, count, leaseMs, ...turnsOf(takes, rounds, most), ...headsOf(from, rounds), length];
    const { rows, left, ended } = await claimBy(db, values, take.entries).catch((error: unknown) => {
      take.done(take.entries, []);
      throw error;
    });
    take.done(left, ended);
    if (left.length > 0) known.forget();
    const { flows: planned, isOver, dues } = rows[0] ?? {};
    const flows = take.flows.length > 0 ? inOrder([...(planned ?? []), ...take.flows], rounds) : (planned ?? []);
    const chunks = rows.filter((row): row is Chunk => row.token !== null);
    const { lease, size, bytes } = leaseOf(chunks, claimedAt, leaseMs, monotonic());
    const lines = new Lines(flows, rounds, dues ?? {});
    const gone = handOut(chunks, lease, lines);
    const attempts = lines.inTurn();
    const last = attempts.at(-1);
    // Where there was no room for more, all have had theirs.
    const isCut = bytes >= MOST_BYTES;
    for (const ended of lines.ended(attempts)) rounds.ended(isCut ? { ...ended, spent: 0 } : ended);
    const isFull = size === count;
    if (!from || takes.ranks.includes(from.rank))
      backlog.found(from, claimedAt, isFull && last ? lines.heads(last.rank) : undefined, takes.notTenants);
    // What others have claimed of what was given may be all of it.
    const hasMore = !isFull && !isCut && (!(isOver ?? true) || gone.length > 0 || take.hasMore || lines.haveMore());
    return { attempts, gone, hasMore, isMissed: size === 0 && (planned ?? []).length > 0 };
  }

  return async (worker, count, leaseMs, takes = ALL) => {
    const turn = turnLength.of(takes.ranks, count);
    const { attempts, gone, end, hadEach } = await lookUntilFull(count, turn, (rest, shorter) =>
      look(worker, rest, leaseMs, takes, shorter),
    );
    turnLength.claimed({
      ranks: takes.ranks,
      count,
      isFull: attempts.length + gone.length === count,
      end,
      hadEach,
      at: monotonic(),
    });
    await letGo(gone);
    return attempts;
  };
}

/** What one statement found. It missed what there is where others had just locked all of it. */
type Found = { attempts: Claimed[]; gone: Gone[]; hasMore: boolean; isMissed: boolean };
type Look = (count: number, turn: number) => Promise<Found>;

/** Of the first look that found anything: the lane in which it ended, and where it came short, how much each tenant had of that, as a mean. */
type Learned = { end: number | undefined; hadEach: number | undefined };

async function lookUntilFull(count: number, longest: number, look: Look): Promise<Found & Learned> {
  let turn = longest;
  let { attempts, gone, hasMore, isMissed } = await look(count, turn);
  for (const waitMs of AGAIN_MS) {
    if (!isMissed) break;
    if (waitMs > 0) await setTimeout(waitMs);
    turn = Math.max(1, turn / SHORTER);
    ({ attempts, gone, hasMore, isMissed } = await look(count, turn));
  }
  const end = attempts.at(-1)?.rank;
  let each = hasMore ? perTenant(attempts) : 0;
  const hadEach = hasMore && !isMissed && each < turn ? each : undefined;
  while (hasMore && !isMissed) {
    // As long as what tenants had just now.
    turn = Math.max(1, Math.min(turn, each || turn / SHORTER));
    const more = await look(count - attempts.length - gone.length, turn).catch(() => undefined);
    // What was claimed is not given up for that.
    if (!more) break;
    each = perTenant(more.attempts);
    attempts.push(...more.attempts);
    gone.push(...more.gone);
    ({ hasMore, isMissed } = more);
  }
  return { attempts, gone, hasMore, isMissed, end, hadEach };
}

function leaseOf(chunks: readonly Chunk[], claimedAt: number, leaseMs: number, answeredAt: number) {
  const size = chunks.reduce((sum, { seqs }) => sum + seqs.length, 0);
  const bytes = chunks.reduce((sum, chunk) => sum + (chunk.bytes ?? 0), 0);
  const { token = 0, now: claimedAtMs = 0 } = chunks[0] ?? {};
  const handle: Claim = { token, size };
  const meanBytes = size > 0 ? bytes / size : 0;
  const lease: Lease = { handle, meanBytes, endsAt: claimedAt + leaseMs, claimedAtMs, claimedAt, answeredAt };
  return { lease, size, bytes };
}

async function claimBy(db: Queryable, values: readonly unknown[], entries: readonly Entry[]): Promise<Answer> {
  if (entries.length === 0) {
    const { rows } = await db.query<Chunk | Missed>({ name: "carillon-claim", text: CLAIM, values: [...values] });
    return { rows, left: [], ended: [] };
  }
  const { rows } = await db.query<(Chunk | Missed) & Answered>({
    name: "carillon-claim-given",
    text: CLAIM_GIVEN,
    values: [...values, ...bitsOf(entries)],
  });
  const { left, ended } = rows[0] ?? {};
  return { rows, left: left ? leftOf(entries, left) : [], ended: ended ?? [] };
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

/** How many each has of what is of the last lane of these, as a mean; 0 where there are none. */
function perTenant(attempts: readonly Claimed[]): number {
  const last = attempts.filter(({ rank }) => rank === attempts.at(-1)?.rank);
  return last.length / Math.max(1, new Set(last.map(({ tenant }) => tenant)).size);
}

/** As of what is due, nothing is known of where they begin in `ready`. */
const IS_ELSEWHERE = true;

/** What an engine gave is the first of its flows; whether there is more, it says itself. */
function flowsOf({ entries }: Take, weights: ReadonlyMap<number, number>): Flow[] {
  const flows = new Map<string, Flow>();
  for (const { rank, tenant, pool } of entries) {
    const key = `${rank} ${tenant} ${pool}`;
    if (!flows.has(key))
      flows.set(key, [rank, tenant, pool, IS_ELSEWHERE, Number.POSITIVE_INFINITY, 0, weights.get(tenant) ?? 1]);
  }
  return [...flows.values()];
}

/** Lane by lane, and within each in the order of the walk. */
function inOrder(flows: readonly Flow[], rounds: Rounds): Flow[] {
  const isPast = ([rank, tenant]: Flow) => (tenant < rounds.next(rank).tenant ? 1 : 0);
  return flows.toSorted((a, b) => a[0] - b[0] || isPast(a) - isPast(b) || a[1] - b[1]);
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
