// Whose turn is when in what a claim took: lane by lane; within a lane tenants in the order of the claim's walk, each turn so many times the
// tenant's weight (turn-length.ts), which is what `weight` is here; within a tenant what waited for its time, by that, then the rest as it was accepted.

import type { Claimed } from "#domain/attempt.ts";
import type { Heads } from "./head.ts";
import type { Ended, Rounds } from "./rounds.ts";

/** What a claim is to take of a flow, as queue_plan() says. Shares are a tenant's, the same in each of its flows. */
export type Flow = [
  rank: number,
  tenant: number,
  pool: number,
  isDue: boolean,
  takes: number,
  seen: number,
  weight: number,
];

/** What it takes of a tenant in a lane. */
type Line = {
  rank: number;
  tenant: number;
  weight: number;
  /** What the tenant had had of its turn before. */
  used: number;
  /** Its share of the claim, and how many of that there are; 0 where nobody looked. */
  takes: number;
  seen: number;
  flows: Flow[];
  /** Of those that had not waited for their time. */
  firstSeq: number;
  attempts: Claimed[];
};

export class Lines {
  readonly #lines = new Map<number, Line>();
  readonly #rounds: Rounds;
  /** By seq, in microseconds. */
  readonly #dueAt: ReadonlyMap<number, number>;
  #last: Line | undefined;

  constructor(flows: readonly Flow[], rounds: Rounds, dues: { [seq: string]: number }) {
    this.#dueAt = new Map(Object.entries(dues).map(([seq, at]) => [Number(seq), at]));
    this.#rounds = rounds;
    for (const flow of flows) {
      const line = this.#lines.get(keyOf(flow[0], flow[1]));
      if (line) line.flows.push(flow);
      else this.#begin(flow);
    }
  }

  #begin(flow: Flow): Line {
    const [rank, tenant, _pool, _isDue, takes, seen, weight] = flow;
    const next = this.#rounds.next(rank);
    const used = next.tenant === tenant ? Math.min(next.spent, weight - 1) : 0;
    const firstSeq = Number.POSITIVE_INFINITY;
    const line: Line = { rank, tenant, weight, used, takes, seen, flows: [flow], firstSeq, attempts: [] };
    this.#lines.set(keyOf(rank, tenant), line);
    return line;
  }

  put(attempt: Claimed): void {
    const { rank, tenant, seq } = attempt;
    // They come tenant by tenant.
    let line = this.#last;
    if (line?.tenant !== tenant || line.rank !== rank) {
      // What nobody planned is what an engine took for another's.
      line =
        this.#lines.get(keyOf(rank, tenant)) ?? this.#begin([rank, tenant, 0, true, Number.POSITIVE_INFINITY, 0, 1]);
      this.#last = line;
    }
    line.attempts.push(attempt);
    if (seq < line.firstSeq && !this.#dueAt.has(seq)) line.firstSeq = seq;
  }

  inTurn(): Claimed[] {
    for (const { flows, attempts } of this.#lines.values()) {
      // What is of one flow of the lane itself comes in order.
      if (flows.length > 1 || flows[0]?.[3]) attempts.sort((a, b) => this.#dueOf(a) - this.#dueOf(b) || a.seq - b.seq);
    }
    const lanes = new Map<number, Line[]>();
    for (const line of this.#lines.values()) {
      const lane = lanes.get(line.rank);
      if (lane) lane.push(line);
      else lanes.set(line.rank, [line]);
    }
    return [...lanes.values()].flatMap((lines) =>
      lines.length === 1 ? (lines[0] as Line).attempts : takeTurns(lines),
    );
  }

  /** Whose turn it was when the claim ended, in each lane, and what they have had of it. If it took nothing, all that it asked have had theirs. */
  ended(attempts: readonly Claimed[]): Ended[] {
    if (attempts.length === 0) return [...this.#lines.values()].map(({ rank, tenant }) => ({ rank, tenant, spent: 0 }));
    const lasts = attempts.filter(({ rank }, n) => attempts[n + 1]?.rank !== rank);
    return lasts.map(({ rank, tenant }) => {
      const { attempts, used, weight } = this.#lines.get(keyOf(rank, tenant)) as Line;
      return { rank, tenant, spent: (attempts.length + used) % weight };
    });
  }

  /** Some may have more: who got all of its share, or of whose others had just locked some. */
  haveMore(): boolean {
    for (const { attempts, takes, seen } of this.#lines.values())
      if (attempts.length >= takes || attempts.length < seen) return true;
    return false;
  }

  /** Where the flows of a lane begin. */
  heads(rank: number): Heads {
    const heads = [...this.#lines.values()]
      .filter((line) => line.rank === rank && line.firstSeq < Number.POSITIVE_INFINITY)
      .flatMap(({ flows, firstSeq }) =>
        flows.filter(([, , , isDue]) => !isDue).map(([, tenant, pool]) => ({ tenant, pool, seq: firstSeq })),
      );
    return { rank, heads };
  }

  #dueOf({ seq }: Claimed): number {
    return this.#dueAt.get(seq) ?? Number.MAX_SAFE_INTEGER;
  }
}

const keyOf = (rank: number, tenant: number): number => rank * 2 ** 33 + tenant;

function takeTurns(lines: readonly Line[]): Claimed[] {
  const ordered: Claimed[] = [];
  let waiting = lines.map(({ attempts, weight, used }) => ({ attempts, weight, from: 0, to: weight - used }));
  while (waiting.length > 0) {
    for (const { attempts, from, to } of waiting)
      for (let n = from; n < Math.min(to, attempts.length); n++) ordered.push(attempts[n] as Claimed);
    waiting = waiting.filter(({ attempts, to }) => to < attempts.length);
    for (const turn of waiting) {
      turn.from = turn.to;
      turn.to += turn.weight;
    }
  }
  return ordered;
}
