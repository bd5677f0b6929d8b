// Dead letters, as many as asked for, without the walk that makes them.

import type pg from "pg";
import { createIds } from "#domain/ids.ts";

export type Dead = {
  tenant?: number;
  channel?: string;
  provider?: string;
  error?: string;
  userId?: string;
  templateId?: string;
  email?: string;
  expiresAt?: string;
};

/** Each is later than those before, also within a millisecond. */
const newId = createIds();

/** Their ids, the newest first. */
export async function makeDead(db: pg.Pool | pg.Client, count: number, dead: Dead = {}): Promise<string[]> {
  const { tenant = 1, channel = "console", provider = "log", error = "HTTP 503", userId, templateId, email } = dead;
  const request = {
    channel,
    recipient: { ...(userId && { userId }), ...(email && { email }) },
    content: { ...(templateId && { templateId }), body: "b" },
  };
  const { rows } = await db.query<{ id: string }>(
    `with stored as (
       insert into carillon.notifications (tenant, id, seq, channel, priority, user_id, accepted_at, expires_at, request)
       select $2, new_id, nextval('carillon.acceptance'), $3, 2, $4, carillon.now(), $5, $6
       from unnest($1::uuid[]) as new_id returning id
     ), failed as (
       insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, provider, outcome, error)
       select id, $2, 'attempt', 'processing', 'failed', 1, $7, 'rejected', $8 from stored
     )
     select id from stored order by id desc`,
    [
      Array.from({ length: count }, newId),
      tenant,
      channel,
      userId ?? null,
      dead.expiresAt ?? null,
      JSON.stringify(request),
      provider,
      error,
    ],
  );
  return rows.map(({ id }) => id);
}
