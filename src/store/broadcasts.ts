// Notices that are accepted chunk by chunk, each for a line of a reminder's plan or a run of a schedule.

import type { Notice } from "#domain/notice.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Next, readNext } from "./due.ts";
import { TELL_DUE } from "./reminder-due.ts";

/** Whose it is: what it came to is written there. */
export type BroadcastOf = { lineId: string } | { runKey: string; runTick: Date };
export type Broadcast = { id: string; tenant: number; notice: Notice; expiresAt: Date | null; reached: number };

export async function insertBroadcast(
  tx: Queryable,
  of: BroadcastOf,
  { tenant, notice, expiresAt }: Omit<Broadcast, "id" | "reached">,
): Promise<void> {
  const [line, key, tick] = "lineId" in of ? [of.lineId, null, null] : [null, of.runKey, of.runTick];
  await tx.query(
    `insert into carillon.broadcasts (tenant, notice, expires_at, line_id, run_key, run_tick) values ($1, $2, $3, $4, $5, $6)`,
    [tenant, JSON.stringify(notice), expiresAt, line, key, tick],
  );
}

export const nextBroadcast = (db: Queryable): Promise<Next> =>
  readNext(db, "broadcast", "select min(turn_at) from carillon.broadcasts");

/** One of each tenant whose turn has come, the one that waited longest. */
export async function dueBroadcasts(db: Queryable): Promise<{ id: string; tenant: number }[]> {
  const { rows } = await db.query<{ id: string; tenant: number }>(
    `select distinct on (tenant) id, tenant from carillon.broadcasts where turn_at <= carillon.now()
     order by tenant, turn_at, id`,
  );
  return rows;
}

/** Locked, unless it is over or in another scheduler's hand. */
export async function takeBroadcast(tx: Queryable, id: string): Promise<Broadcast | undefined> {
  const { rows } = await tx.query<Broadcast>(
    `select id, tenant, notice, expires_at as "expiresAt", reached from carillon.broadcasts
     where id = $1 and turn_at <= carillon.now() for update skip locked`,
    [id],
  );
  return rows[0];
}

export type Advance = {
  /** How many recipients were seen to. */
  done: number;
  notifications: string[];
  error: string | null;
  isOver: boolean;
};

/** Writes down what was sent, and where: the rest has its turn after all that wait now. */
export async function advanceBroadcast(tx: Queryable, id: string, advance: Advance): Promise<void> {
  const { done, notifications, error, isOver } = advance;
  await tx.query(
    `with b as (
       select * from carillon.broadcasts where id = $1
     ), due as (
       select p.tenant, p.key, p.at, p.before, sent
       from carillon.reminder_plan p join b on p.id = b.line_id, unnest($3::uuid[]) as sent
     ), told as (${TELL_DUE}), line as (
       update carillon.reminder_plan p set notifications = p.notifications || $3::uuid[], error = coalesce(p.error, $4),
         ended_at = carillon.now(),
         outcome = case when not $5 then 'sending' when p.notifications || $3::uuid[] <> '{}' then 'sent' else 'failed' end
       from b where p.id = b.line_id
     ), run as (
       update carillon.runs r set notifications = r.notifications || $3::uuid[], error = coalesce(r.error, $4),
         outcome = case when not $5 then 'sending' when r.notifications || $3::uuid[] <> '{}' then 'sent' else 'failed' end
       from b where r.tenant = b.tenant and r.key = b.run_key and r.tick = b.run_tick
     ), over as (
       delete from carillon.broadcasts where id = $1 and $5
     )
     update carillon.broadcasts set reached = reached + $2, turn_at = carillon.now(), failures = 0
     where id = $1 and not $5`,
    [id, done, notifications, error, isOver],
  );
}

/** A chunk could not be accepted: it is tried again later. Returns how often that happened since the last that could. */
export async function putOffBroadcast(db: Queryable, id: string): Promise<number> {
  const { rows } = await db.query<{ failures: number }>(
    `update carillon.broadcasts set turn_at = carillon.now() + carillon.backoff(failures), failures = failures + 1
     where id = $1 returning failures`,
    [id],
  );
  return rows[0]?.failures ?? 0;
}
