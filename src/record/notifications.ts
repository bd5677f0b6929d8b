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
  id?: string;
  userId?: string;
  /** An address, a number, a Slack channel or a URL that it goes to. */
  recipient?: string;
  templateId?: string;
  provider?: string;
  /** Part of what went wrong with an attempt, whatever its case. */
  error?: string;
  since?: string;
  until?: string;
  metadata?: { [key: string]: string };
};
/** `looked`: how many were looked at; where there is more, `until` says back to which instant. */
export type Page = { records: Record[]; looked: number; nextId: string | undefined; until: Date | undefined };
type Stretch = { beforeId: string | undefined; limit: number; maxScanned: number };

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
 * Only the tenant, the user, the time and failures have an index: another one would cost every acceptance, for the few who look. Other
 * filters look at no more than `maxScanned` notifications a page. What is large makes a page short too. Then `nextId` says where to go on.
 * So a rare filter costs several cheap pages instead of one that times out.
 */
export async function listRecords(db: Queryable, tenant: number, filters: Filters, stretch: Stretch): Promise<Page> {
  const values: unknown[] = [tenant];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const { limit, maxScanned } = stretch;
  const { rows } = await db.query<
    Row & { scanned: number; last_id: string | null; last_at: Date | null; found: number }
  >(
    `with scanned as materialized (${scannedBy(filters, stretch, bind)}), extent as (
       select count(*)::int as scanned, (select id from scanned order by id limit 1) as last_id from scanned
     ), found as materialized (
       select r.*, ${bytesOf("r.request")} as bytes from scanned, lateral (
         select ${COLUMNS} from carillon.records r where r.tenant = $1 and r.id = scanned.id offset 0
       ) r where ${["scanned.fits", ...costlyOf(filters, bind)].join(" and ")} order by r.id desc limit ${bind(limit + 1)}
     )
     select page.*, extent.scanned, extent.last_id, carillon.time_of(extent.last_id) as last_at, (select count(*)::int from found) as found
     from extent left join ${fitting("found")} page on true order by page.id desc`,
    values,
  );
  const records = rows
    .filter(({ id }) => id !== null)
    .slice(0, limit)
    .map(recordOf);
  const { found = 0, scanned = 0, last_id = null, last_at = null } = rows[0] ?? {};
  if (found > records.length) {
    const last = records.at(-1);
    return { records, looked: scanned, nextId: last?.id, until: last?.acceptedAt };
  }
  const isCut = scanned === maxScanned && last_id !== null;
  return {
    records,
    looked: scanned,
    nextId: isCut ? last_id : undefined,
    until: isCut ? (last_at ?? undefined) : undefined,
  };
}

/** The next so many, each with whether what stands in its own row fits. */
function scannedBy(filters: Filters, { beforeId, maxScanned }: Stretch, bind: (value: unknown) => string): string {
  const narrow = ["n.tenant = $1"];
  if (beforeId) narrow.push(`n.id < ${bind(beforeId)}`);
  if (filters.id) narrow.push(`n.id = ${bind(filters.id)}`);
  if (filters.userId) narrow.push(`n.user_id = ${bind(filters.userId)}`);
  // The id carries the clock of the process that accepted, accepted_at the database's: a day of slack between them.
  if (filters.since) narrow.push(`n.id >= carillon.first_id(${bind(filters.since)}::timestamptz - interval '1 day')`);
  if (filters.until) narrow.push(`n.id < carillon.first_id(${bind(filters.until)}::timestamptz + interval '1 day')`);
  const fits = `coalesce(${["true", ...cheapOf(filters, bind)].join(" and ")}, false) as fits`;
  const most = bind(maxScanned);
  const columns = "n.accepted_at, n.channel, n.priority, n.request";
  if (filters.status !== "failed" || filters.userId) {
    return `select n.id, ${fits} from carillon.notifications n where ${narrow.join(" and ")} order by n.id desc limit ${most}`;
  }
  // Whatever has failed is in an index.
  const events = narrow.map((one) => one.replaceAll("n.id", "notification_id").replaceAll("n.tenant", "tenant"));
  return `select f.id, ${fits} from (
      select distinct notification_id as id from carillon.events where to_status = 'failed' and ${events.join(" and ")}
      order by notification_id desc limit ${most}
    ) f cross join lateral (select ${columns} from carillon.notifications n where n.tenant = $1 and n.id = f.id) n`;
}

/** Of the notification's own row. */
function cheapOf(filters: Filters, bind: (value: unknown) => string): string[] {
  const keep: string[] = [];
  if (filters.since) keep.push(`n.accepted_at >= ${bind(filters.since)}`);
  if (filters.until) keep.push(`n.accepted_at < ${bind(filters.until)}`);
  if (filters.channel) keep.push(`n.channel = ${bind(filters.channel)}`);
  if (filters.rank !== undefined) keep.push(`n.priority = ${bind(filters.rank)}`);
  if (filters.templateId) keep.push(`n.request #>> '{content,templateId}' = ${bind(filters.templateId)}`);
  if (filters.recipient) {
    keep.push(`(select lower(${bind(filters.recipient)}) in (lower(to_ ->> 'email'), to_ ->> 'phone', lower(to_ ->> 'slackChannel'),
      lower(to_ ->> 'webhookUrl')) from (select n.request -> 'recipient' as to_ offset 0) r)`);
  }
  for (const [key, value] of Object.entries(filters.metadata ?? {})) {
    keep.push(`n.request -> 'metadata' ->> ${bind(key)} = ${bind(value)}`);
  }
  return keep;
}

/** Of what happened to it. */
function costlyOf(filters: Filters, bind: (value: unknown) => string): string[] {
  const keep: string[] = [];
  if (filters.status) keep.push(`status = ${bind(filters.status)}`);
  const events: string[] = [];
  if (filters.provider) events.push(`e.provider = ${bind(filters.provider)}`);
  if (filters.error) events.push(`strpos(lower(e.error), lower(${bind(filters.error)})) > 0`);
  if (events.length > 0) {
    const which = events.join(" and ");
    keep.push(`exists (select from carillon.events e where e.notification_id = scanned.id and ${which})`);
  }
  return keep;
}
