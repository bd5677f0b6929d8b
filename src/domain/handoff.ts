// What a commit hands over to an engine: ready work that waits beside PostgreSQL.

import { madeAtMs } from "./ids.ts";

export const ENGINES = ["redis", "sqs"] as const;
export type EngineName = (typeof ENGINES)[number];

/** All of a commit that is of one lane, column by column. Where a column is the same for all, or its numbers follow each other, it is the first of it alone. */
export type Handoff = {
  number: number;
  engine: EngineName;
  rank: number;
  /** How many. */
  size: number;
  seqs: readonly number[];
  tenants: readonly number[];
  pools: readonly number[];
  /** Which of the handoff these are; all of them where it does not say. */
  places?: readonly number[];
};

/** Where ready work waits. */
export const PLACES = ["postgres", ...ENGINES] as const;
export type PlaceName = (typeof PLACES)[number];

/**
 * How it is moved. `live-forward`: new work goes to the target at once, and what waits at the source is taken over. `drain-first`: new work waits in
 * PostgreSQL until workers have emptied the source.
 */
export const MOVE_STRATEGIES = ["drain-first", "live-forward"] as const;
export type MoveStrategy = (typeof MOVE_STRATEGIES)[number];

/** Some rows of a commit, from `m` to `n`, that are next to each other in the record: of tenant `t`, from the id `a` to the id `b`. */
export type Stretch = { t: number; a: string; b: string; m: number; n: number };

/** Who wants but a few of them reads all: more than this would cost more than to look for each. */
const MOST_OF_STRETCH = 32;
/** Further apart, others may have made more between them than they are themselves. */
const APART_MS = 1;

/** In the order of the rows; ids may be in any. */
export function stretchesOf(rows: readonly { tenant: number; id: string }[]): Stretch[] {
  const stretches: Stretch[] = [];
  const open = new Map<number, { stretch: Stretch; size: number; fromMs: number; toMs: number }>();
  for (const [n, { tenant, id }] of rows.entries()) {
    const ms = madeAtMs(id);
    const last = open.get(tenant);
    if (last && last.size < MOST_OF_STRETCH && ms >= last.fromMs - APART_MS && ms <= last.toMs + APART_MS) {
      const { stretch } = last;
      if (id < stretch.a) stretch.a = id;
      if (id > stretch.b) stretch.b = id;
      stretch.n = n;
      last.size++;
      last.fromMs = Math.min(last.fromMs, ms);
      last.toMs = Math.max(last.toMs, ms);
    } else {
      const stretch = { t: tenant, a: id, b: id, m: n, n };
      stretches.push(stretch);
      open.set(tenant, { stretch, size: 1, fromMs: ms, toMs: ms });
    }
  }
  return stretches;
}
