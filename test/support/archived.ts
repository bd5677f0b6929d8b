// A week that is old enough to go, and the chore that archives and drops it.

import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { createGunzip } from "node:zlib";
import type pg from "pg";
import type { Manifest } from "#archive/manifest.ts";
import { retireArchived } from "#archive/retire.ts";
import type { ArchiveStore } from "#archive/store.ts";

/** A week of twenty weeks ago with `rows` that failed then, of two tenants and a callback. Answers with its name. */
export async function fillOldWeek(db: pg.Pool, rows: number): Promise<string> {
  const { rows: made } = await db.query(
    `select at, to_char(date_trunc('week', at at time zone 'UTC'), 'YYYYMMDD') as week, carillon.make_partitions(at, at)
     from (select date_trunc('week', now() - interval '140 days') + interval '1 day' as at) x`,
  );
  const [{ at, week }] = made;
  await db.query("insert into carillon.tenants (name) values ('acme') on conflict do nothing");
  await db.query(
    `with stored as (
       insert into carillon.notifications (tenant, id, seq, channel, priority, user_id, accepted_at, request)
       select case n when 1 then -1 else 1 + n % 2 end, carillon.first_id($1::timestamptz + n * interval '1 s'), nextval('carillon.acceptance'),
         'console', 2, 'user ' || n, $1, case n when 1 then json_build_object('channel', 'callback', 'callback', json_build_object('data',
           json_build_object('userId', 'user 3', 'notificationId', carillon.first_id($1::timestamptz + interval '3 s'))))
         else json_build_object('channel', 'console', 'n', n, 'text', E'a\\nb') end
       from generate_series(1, $2) as n returning tenant, id
     )
     insert into carillon.events (notification_id, tenant, at, type, from_status, to_status)
     select id, tenant, $1, 'attempt', 'processing', 'failed' from stored`,
    [at, rows],
  );
  return week;
}

/** The chore, to its end. */
export async function retireAll(db: pg.Pool, store: ArchiveStore): Promise<number> {
  const facts = { archived: () => {}, archivePostponed: () => {} };
  let done = 0;
  for await (const step of retireArchived({ db, store, facts }, 90, 1_000)) done += step;
  return done;
}

export type Line = { notification: { id: string; tenant: number; request: object }; events: { type: string }[] };

/** Every line of it, as it reads. */
export async function readLines(store: ArchiveStore, manifest: Manifest): Promise<Line[]> {
  const lines: Line[] = [];
  for (const { key } of manifest.parts) {
    const stream = (await store.get(key)) ?? assert.fail(key);
    const read = await text(stream.pipe(createGunzip()));
    lines.push(
      ...read
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Line),
    );
  }
  return lines;
}
