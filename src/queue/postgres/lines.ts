// Callbacks that stand in line: of a line only the first is ever under way, and the next has its turn when that has ended.
//
// What stands behind another waits in `later` for a time that never comes. Who is first follows from the table of lines and from what is in
// the queue, and is written nowhere: a crash leaves nothing behind but a first that has not been told, which the keeper finds.

import type { Queryable } from "#store/connection/database.ts";

/** One that was claimed, and the line that it belongs to. */
export type Lined = { line: string; tenant: number; seq: number };

/** Whose turn it is. One that was sent again by a person has left its line: it goes to the end of it. */
export async function areFirst(db: Queryable, lined: readonly Lined[]): Promise<boolean[]> {
  if (lined.length === 0) return [];
  const { rows } = await db.query<{ first: boolean[] }>({
    name: "carillon-lines-first",
    text: "select carillon.queue_are_first($1, $2, $3) as first",
    values: [lined.map(({ line }) => line), lined.map(({ tenant }) => tenant), lined.map(({ seq }) => seq)],
  });
  return rows[0]?.first ?? [];
}

/** Within the transaction that accepted them, in their order. */
export async function lineUp(
  tx: Queryable,
  waiting: readonly { line: string; tenant: number; id: string }[],
): Promise<void> {
  if (waiting.length === 0) return;
  await tx.query({
    name: "carillon-lines-join",
    text: "select carillon.queue_line_up($1, $2, $3)",
    values: [waiting.map(({ line }) => line), waiting.map(({ tenant }) => tenant), waiting.map(({ id }) => id)],
  });
}

/** The first of each line has its turn. Doing it again changes nothing. */
export async function advance(db: Queryable, lines: readonly string[]): Promise<void> {
  await db.query({ name: "carillon-lines-advance", text: "select carillon.queue_advance($1)", values: [lines] });
}

/** All lines, so many at a time: answers with where to go on; empty at the end, as at the start. */
export async function advanceSome(db: Queryable, after: string, count: number): Promise<string> {
  const { rows } = await db.query<{ last: string | null }>({
    name: "carillon-lines-advance-some",
    text: "select last from carillon.queue_advance_some($1, $2)",
    values: [after, count],
  });
  return rows[0]?.last ?? "";
}

/** Of an endpoint that answers again or goes on, up to so many that were put off before their first try may go now; answers with how many. */
export async function hurry(db: Queryable, tenant: number, endpoint: string, count: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>({
    name: "carillon-callbacks-hurry",
    text: "select carillon.queue_hurry($1, $2, $3) as n",
    values: [-tenant, endpoint, count],
  });
  return rows[0]?.n ?? 0;
}
