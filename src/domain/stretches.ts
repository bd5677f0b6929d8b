// Where the rows of a commit are in the record: next to each other, as a rule.

import { madeAtMs } from "./ids.ts";

/**
 * Some rows of a commit, all of the lane `p` and the tenant `t`, that are next to each other in the record: from the id `a` to the id `b`. Counted from 0 the first of
 * them is row `m` of the commit, the last row `n`. Of two stretches of a lane and a tenant the ids do not overlap: each row is in one.
 */
export type Stretch = { p: number; t: number; a: string; b: string; m: number; n: number };

/** Who wants but a few of them reads all: more than this would cost more than to look for each. */
const MOST_OF_STRETCH = 32;
/** Further apart, others may have made more between them than they are themselves. */
const APART_MS = 1;
const MOST_MS = 8;

type Placed = { id: string; row: number };

export function stretchesOf(rows: readonly { tenant: number; rank: number; id: string }[]): Stretch[] {
  const lines = new Map<string, Placed[]>();
  for (const [row, { tenant, rank, id }] of rows.entries()) {
    const key = `${rank} ${tenant}`;
    const line = lines.get(key);
    if (line) line.push({ id, row });
    else lines.set(key, [{ id, row }]);
  }
  return [...lines.values()].flatMap((line) => {
    const [{ row }] = line as [Placed];
    const { tenant, rank } = rows[row] as { tenant: number; rank: number };
    return cut(inOrder(line)).map((found) => ({ p: rank, t: tenant, ...found }));
  });
}

/** As a rule they are. */
function inOrder(line: Placed[]): Placed[] {
  const isInOrder = line.every(({ id }, n) => n === 0 || (line[n - 1] as Placed).id < id);
  return isInOrder ? line : line.toSorted((x, y) => (x.id < y.id ? -1 : 1));
}

function cut(line: readonly Placed[]): Omit<Stretch, "p" | "t">[] {
  const stretches: Omit<Stretch, "p" | "t">[] = [];
  let size = 0;
  let fromMs = 0;
  let lastMs = 0;
  for (const { id, row } of line) {
    const ms = madeAtMs(id);
    const last = stretches.at(-1);
    if (last && size < MOST_OF_STRETCH && ms <= lastMs + APART_MS && ms <= fromMs + MOST_MS) {
      last.b = id;
      last.m = Math.min(last.m, row);
      last.n = Math.max(last.n, row);
      size++;
    } else {
      stretches.push({ a: id, b: id, m: row, n: row });
      size = 1;
      fromMs = ms;
    }
    lastMs = ms;
  }
  return stretches;
}
