// How far those have come that follow the feed from inside.
//
// Whoever acts on facts reads its position, acts, and moves it, all in one transaction: a crash repeats all of it or nothing. Reading
// locks, so that of two processes under one name the second waits and goes on where the first stopped.

import { type Position, startOf } from "#domain/fact.ts";
import type { Queryable } from "#store/connection/database.ts";
import { readEpoch } from "./feed.ts";

/** A name that was never heard begins with the oldest that is kept. */
export async function readFollower(tx: Queryable, name: string): Promise<Position> {
  const found = await lockFollower(tx, name);
  if (found) return found;
  const start = startOf(await readEpoch(tx));
  await startFollower(tx, name, start);
  return (await lockFollower(tx, name)) ?? start;
}

async function lockFollower(tx: Queryable, name: string): Promise<Position | undefined> {
  const { rows } = await tx.query<Position>({
    name: "carillon-follower",
    text: `select epoch, key::float8 as key, seq::float8 as seq, ordinal from carillon.followers where name = $1 for update`,
    values: [name],
  });
  return rows[0];
}

/** Where the first of these is that there is; it may go on meanwhile. */
export async function findFollower(db: Queryable, names: readonly string[]): Promise<Position | undefined> {
  const { rows } = await db.query<Position>(
    `select epoch, key::float8 as key, seq::float8 as seq, ordinal from carillon.followers where name = any ($1)
     order by array_position($1, name) limit 1`,
    [names],
  );
  return rows[0];
}

/** A new one that begins at this position. */
export async function startFollower(
  tx: Queryable,
  name: string,
  { epoch, key, seq, ordinal }: Position,
): Promise<void> {
  await tx.query(
    `insert into carillon.followers (name, epoch, key, seq, ordinal) values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [name, epoch, key, seq, ordinal],
  );
}

/** Those whose names begin with another's and a space, whoever was not moved for the longest time first. */
export async function findFollowersOf(tx: Queryable, name: string): Promise<(Position & { name: string })[]> {
  const { rows } = await tx.query<Position & { name: string }>({
    name: "carillon-followers-of",
    text: `select name, epoch, key::float8 as key, seq::float8 as seq, ordinal from carillon.followers
      where starts_with(name, $1 || ' ') order by moved_at, name`,
    values: [name],
  });
  return rows;
}

export async function endFollower(tx: Queryable, name: string): Promise<void> {
  await tx.query("delete from carillon.followers where name = $1", [name]);
}

export async function moveFollower(tx: Queryable, name: string, { epoch, key, seq, ordinal }: Position): Promise<void> {
  await tx.query({
    name: "carillon-follower-moved",
    text: `update carillon.followers set epoch = $2, key = $3, seq = $4, ordinal = $5, moved_at = carillon.now() where name = $1`,
    values: [name, epoch, key, seq, ordinal],
  });
}

/** The same, where it was so far behind that something was taken which it had not read. */
export async function skipFollower(tx: Queryable, name: string, to: Position): Promise<void> {
  await moveFollower(tx, name, to);
  await tx.query("update carillon.followers set missed_at = carillon.now() where name = $1", [name]);
}
