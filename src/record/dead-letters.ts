// Dead letters: notifications that failed for good, and the way back.

import { digestOf, type Fields } from "#domain/audit.ts";
import type { Channel, NotificationRequest } from "#domain/notification.ts";
import { type Priority, priorityOf } from "#domain/priority.ts";
import type { Queryable } from "#store/connection/database.ts";
import type { Posted } from "./deliveries.ts";
import { fitting } from "./page.ts";
import { bytesOf } from "./request-bytes.ts";

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
  templateId?: string;
  outcome?: string;
  /** Part of the error's words, whatever their case. */
  error?: string;
  /** The error without what tells one message from another. */
  cause?: string;
  /** Of callbacks: what they tell. */
  type?: string;
  since?: string;
  until?: string;
};

/** Which dead letters were meant, as the audit log has it. Whose they were it says elsewhere, and what was looked for in errors may name somebody. */
export function auditedOf({ filter, ids }: { filter?: DeadLetterFilter; ids?: readonly string[] }): Fields {
  if (!filter) return { ids };
  const { userId: _u, error, cause, ...rest } = filter;
  return { filter: { ...rest, ...(error && { error: digestOf(error) }), ...(cause && { cause: digestOf(cause) }) } };
}

/** Of a notification `r` and its last event `e`: that it is a dead letter, and of those one that the filter names. */
export function conditionsOf(filter: DeadLetterFilter, bind: (value: unknown) => string): string[] {
  const keep = ["e.to_status = 'failed'", "e.type <> 'purged'"];
  if (filter.channel) keep.push(`r.channel = ${bind(filter.channel)}`);
  if (filter.rank !== undefined) keep.push(`r.priority = ${bind(filter.rank)}`);
  if (filter.provider) keep.push(`e.provider = ${bind(filter.provider)}`);
  if (filter.userId) keep.push(`r.user_id = ${bind(filter.userId)}`);
  if (filter.type) keep.push(`r.request -> 'callback' ->> 'type' = ${bind(filter.type)}`);
  if (filter.since) keep.push(`e.at >= ${bind(filter.since)}`);
  if (filter.until) keep.push(`e.at < ${bind(filter.until)}`);
  if (filter.outcome) keep.push(`e.outcome = ${bind(filter.outcome)}`);
  if (filter.error) keep.push(`strpos(lower(e.error), lower(${bind(filter.error)})) > 0`);
  if (filter.cause) keep.push(`carillon.cause_of(e.error) = ${bind(filter.cause)}`);
  if (filter.templateId) keep.push(`r.request #>> '{content,templateId}' = ${bind(filter.templateId)}`);
  return keep;
}

/** `nextId` is where to go on, below it. A page may be short, or empty, and there may be more all the same. */
export type Page<Letter> = { letters: Letter[]; nextId: string | undefined };
export type Stretch = { beforeId: string | undefined; limit: number; maxScanned: number };

/**
 * Those that ended with the status they had: a letter that was sent again is dead no more. Every failure of the past has an
 * entry in the index; of these no more than `maxScanned` are looked at, so that a page takes no longer because there are
 * many, or because few of them match.
 */
async function readPage<Letter extends { id: string }>(
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  columns: string,
  { beforeId, limit, maxScanned }: Stretch,
): Promise<Page<Letter>> {
  const values: unknown[] = [tenant];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const keep = ["r.status = 'failed'", ...conditionsOf(filter, bind)];
  const below = beforeId ? `and notification_id < ${bind(beforeId)}` : "";
  const { rows } = await db.query<Letter & { scanned: number; last_id: string | null; found: number }>(
    `with scanned as materialized (
       select distinct notification_id as id from carillon.events where tenant = $1 and to_status = 'failed' ${below}
       order by notification_id desc limit ${bind(maxScanned)}
     ), extent as (
       select count(*)::int as scanned, (select id from scanned order by id limit 1) as last_id from scanned
     ), found as materialized (
       select ${columns} from scanned s cross join lateral (
         select * from carillon.records r where r.tenant = $1 and r.id = s.id offset 0
       ) r cross join lateral (
         select * from carillon.events e where e.notification_id = s.id order by e.seq desc, e.at desc limit 1
       ) e where ${keep.join(" and ")} order by s.id desc limit ${bind(limit)}
     )
     select page.*, extent.scanned, extent.last_id, (select count(*)::int from found) as found
     from extent left join ${fitting("found")} page on true order by page.id desc`,
    values,
  );
  const letters = rows.filter(({ id }) => id !== null);
  const { scanned = 0, last_id = null, found = 0 } = rows[0] ?? {};
  if (found === limit || found > letters.length) return { letters, nextId: letters.at(-1)?.id };
  return { letters, nextId: scanned === maxScanned ? (last_id ?? undefined) : undefined };
}

export async function listDeadLetters(
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  stretch: Stretch,
): Promise<Page<DeadLetter>> {
  type Row = Omit<DeadLetter, "priority"> & { rank: number };
  const columns = `r.id, r.channel, r.priority as rank, r.accepted_at as "acceptedAt", e.at as "failedAt", e.attempt as attempts,
    e.provider, e.outcome, e.error, r.request, ${bytesOf("r.request")} as bytes`;
  const { letters, nextId } = await readPage<Row>(db, tenant, filter, columns, stretch);
  return { letters: letters.map(({ rank, ...letter }) => ({ ...letter, priority: priorityOf(rank) })), nextId };
}

export type DeadCallback = Pick<DeadLetter, "id" | "acceptedAt" | "failedAt" | "attempts" | "outcome" | "error"> & {
  callback: Posted;
};

/** The same of callbacks, whose user is their endpoint; `tenant` is whose they are. */
export const listDeadCallbacks = (
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  stretch: Stretch,
): Promise<Page<DeadCallback>> =>
  readPage(
    db,
    -tenant,
    filter,
    `r.id, r.accepted_at as "acceptedAt", e.at as "failedAt", e.attempt as attempts, e.outcome, e.error,
     r.request -> 'callback' as callback, ${bytesOf("r.request")} as bytes`,
    stretch,
  );
