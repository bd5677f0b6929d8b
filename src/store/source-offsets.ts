// How far each partition of a source has come: the next message that is to be accepted.

import type { Queryable } from "#store/connection/database.ts";

export type Partition = { source: string; topic: string; partition: number };

/** By partition. */
export async function readOffsets(db: Queryable, source: string, topic: string): Promise<Map<number, number>> {
  const { rows } = await db.query<{ partition: number; next: number }>(
    "select partition, next::float8 as next from carillon.source_offsets where source = $1 and topic = $2",
    [source, topic],
  );
  return new Map(rows.map(({ partition, next }) => [partition, next]));
}

/**
 * In the transaction that accepts what is between, with where the partition ended then, if that is known. False where it does not stand at `from`: somebody else has moved it. Until the transaction
 * ends nobody else moves it.
 */
export async function moveOffset(
  tx: Queryable,
  { source, topic, partition }: Partition,
  { from, next, ends }: { from: number; next: number; ends?: number | undefined },
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: "carillon-source-move",
    text: `insert into carillon.source_offsets as o (source, topic, partition, next, ends) values ($1, $2, $3, $5, $6)
      on conflict (source, topic, partition) do update set next = excluded.next, ends = excluded.ends, moved_at = carillon.now() where o.next = $4`,
    values: [source, topic, partition, from, next, ends ?? null],
  });
  return rowCount === 1;
}
