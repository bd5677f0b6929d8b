// Dead letters: notifications that failed for good, and the way back.

import type { Channel, NotificationRequest } from "../domain/notification.ts";
import { type Priority, priorityOf } from "../domain/priority.ts";
import type { Queryable } from "./database.ts";

export type DeadLetter = {
  id: string;
  channel: Channel;
  priority: Priority;
  acceptedAt: Date;
  failedAt: Date;
  attempts: number;
  provider: string | null;
  outcome: string | null;
  error: string | null;
  request: NotificationRequest;
};

export type DeadLetterFilter = {
  channel?: Channel;
  rank?: number;
  provider?: string;
  userId?: string;
  since?: string;
  until?: string;
};

/** Those that ended with the status they had: a letter that was sent again is dead no more. */
function found(filter: DeadLetterFilter, bind: (value: unknown) => string): string {
  const keep = ["e.tenant = $1", "e.to_status = 'failed'", "r.status = 'failed'"];
  if (filter.channel) keep.push(`r.channel = ${bind(filter.channel)}`);
  if (filter.rank !== undefined) keep.push(`r.priority = ${bind(filter.rank)}`);
  if (filter.provider) keep.push(`e.provider = ${bind(filter.provider)}`);
  if (filter.userId) keep.push(`r.user_id = ${bind(filter.userId)}`);
  if (filter.since) keep.push(`e.at >= ${bind(filter.since)}`);
  if (filter.until) keep.push(`e.at < ${bind(filter.until)}`);
  // The last of its failures is the one that counts, if it failed, was sent again, and failed again.
  keep.push(
    `not exists (select from carillon.events later where later.notification_id = e.notification_id and later.at > e.at)`,
  );
  return `carillon.events e join carillon.records r on r.tenant = e.tenant and r.id = e.notification_id where ${keep.join(" and ")}`;
}

export async function listDeadLetters(
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  { beforeId, limit }: { beforeId: string | undefined; limit: number },
): Promise<DeadLetter[]> {
  const values: unknown[] = [tenant];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const from = found(filter, bind);
  const below = beforeId ? ` and e.notification_id < ${bind(beforeId)}` : "";
  const { rows } = await db.query<Omit<DeadLetter, "priority"> & { rank: number }>(
    `select r.id, r.channel, r.priority as rank, r.accepted_at as "acceptedAt", e.at as "failedAt", e.attempt as attempts,
       e.provider, e.outcome, e.error, r.request
     from ${from}${below} order by e.notification_id desc limit ${bind(limit)}`,
    values,
  );
  return rows.map(({ rank, ...letter }) => ({ ...letter, priority: priorityOf(rank) }));
}

export async function countDeadLetters(db: Queryable, tenant: number, filter: DeadLetterFilter): Promise<number> {
  const values: unknown[] = [tenant];
  const from = found(filter, (value) => `$${values.push(value)}`);
  const { rows } = await db.query<{ n: number }>(`select count(*)::int as n from ${from}`, values);
  return rows[0]?.n ?? 0;
}

/** Puts ended notifications back into their lanes; answers with the ids of those that were. */
export async function retryEnded(db: Queryable, tenant: number, ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>("select carillon.retry($1, $2) as id", [tenant, ids]);
  return rows.map(({ id }) => id);
}
