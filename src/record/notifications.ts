// Reads notifications with the status that the facts give them.

import type { Channel, KeptRequest } from "#domain/notification.ts";
import { type Priority, priorityOf } from "#domain/priority.ts";
import type { Status } from "#domain/status.ts";
import type { Queryable } from "#store/connection/database.ts";
import { fitting } from "./page.ts";
import { bytesOf } from "./request-bytes.ts";

export type Record = {
  id: string;
  status: Status;
  channel: Channel;
  priority: Priority;
  acceptedAt: Date;
  dueAt: Date | null;
  expiresAt: Date | null;
  request: KeptRequest;
};

export type Filters = {
  status?: Status;
  channel?: Channel;
  rank?: number;
  userId?: string;
  provider?: string;
  since?: string;
  until?: string;
  metadata?: { [key: string]: string };
};
export type Page = { records: Record[]; nextId: string | undefined };

type Row = {
  id: string;
  status: Status;
  channel: Channel;
  priority: number;
  accepted_at: Date;
  due_at: Date | null;
  expires_at: Date | null;
  request: KeptRequest;
};
const COLUMNS = "id, status, channel, priority, accepted_at, due_at, expires_at, request";

const recordOf = (row: Row): Record => ({
  id: row.id,
  status: row.status,
  channel: row.channel,
  priority: priorityOf(row.priority),
  acceptedAt: row.accepted_at,
  dueAt: row.due_at,
  expiresAt: row.expires_at,
  request: row.request,
});

export async function findRecord(db: Queryable, tenant: number, id: string): Promise<Record | undefined> {
  const { rows } = await db.query<Row>({
    name: "carillon-record",
    text: `select ${COLUMNS} from carillon.records where tenant = $1 and id = $2`,
    values: [tenant, id],
  });
  return rows[0] && recordOf(rows[0]);
}

/**
 * A page of the tenant's notifications, newest first, from below `beforeId`.
 *
 * Only the tenant, the user and the time have an index. Other filters look at no more than
 * `maxScanned` notifications a page. What is large makes a page short too. Then `nextId` says where to go on.
 * So a rare filter costs several cheap pages instead of one that times out.
 */
export async function listRecords(
  db: Queryable,
  tenant: number,
  filters: Filters,
  { beforeId, limit, maxScanned }: { beforeId: string | undefined; limit: number; maxScanned: number },
): Promise<Page> {
  const values: unknown[] = [tenant];
  const bind = (value: unknown) => `$${values.push(value)}`;

  const narrow = ["tenant = $1"];
  if (beforeId) narrow.push(`id < ${bind(beforeId)}`);
  if (filters.userId) narrow.push(`user_id = ${bind(filters.userId)}`);
  // The id carries the clock of the process that accepted, accepted_at the database's: a day of slack between them.
  if (filters.since) narrow.push(`id >= carillon.first_id(${bind(filters.since)}::timestamptz - interval '1 day')`);
  if (filters.until) narrow.push(`id < carillon.first_id(${bind(filters.until)}::timestamptz + interval '1 day')`);

  const keep = ["true"];
  if (filters.since) keep.push(`accepted_at >= ${bind(filters.since)}`);
  if (filters.until) keep.push(`accepted_at < ${bind(filters.until)}`);
  if (filters.channel) keep.push(`channel = ${bind(filters.channel)}`);
  if (filters.rank !== undefined) keep.push(`priority = ${bind(filters.rank)}`);
  for (const [key, value] of Object.entries(filters.metadata ?? {})) {
    keep.push(`request -> 'metadata' ->> ${bind(key)} = ${bind(value)}`);
  }
  if (filters.provider) {
    keep.push(`exists (select from carillon.events e where e.notification_id = scanned.id
      and e.provider = ${bind(filters.provider)})`);
  }
  if (filters.status) keep.push(`status = ${bind(filters.status)}`);

  const { rows } = await db.query<Row & { scanned: number; last_id: string | null; found: number }>(
    `with scanned as materialized (
       select tenant, id from carillon.notifications where ${narrow.join(" and ")} order by id desc limit ${bind(maxScanned)}
     ), extent as (
       select count(*)::int as scanned, (select id from scanned order by id limit 1) as last_id from scanned
     ), found as materialized (
       select r.*, ${bytesOf("r.request")} as bytes from scanned, lateral (
         select ${COLUMNS} from carillon.records r where r.tenant = scanned.tenant and r.id = scanned.id offset 0
       ) r where ${keep.join(" and ")} order by r.id desc limit ${bind(limit + 1)}
     )
     select page.*, extent.scanned, extent.last_id, (select count(*)::int from found) as found
     from extent left join ${fitting("found")} page on true order by page.id desc`,
    values,
  );
  const records = rows
    .filter(({ id }) => id !== null)
    .slice(0, limit)
    .map(recordOf);
  const extent = rows[0];
  const isFull = extent !== undefined && extent.found > records.length;
  const isCut = extent !== undefined && extent.scanned === maxScanned;
  const nextId = isFull ? records.at(-1)?.id : isCut ? (extent.last_id ?? undefined) : undefined;
  return { records, nextId };
}
