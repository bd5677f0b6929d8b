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
  const { narrow, source } = sourceOf(filters, stretch, bind);
  const fits = ["true", ...cheapOf(filters, bind)].join(" and ");
  // Read only as far as a page goes; how far that is, is counted where there were not enough.
  const { rows } = await db.query<
    Row & { nth: number; seen: number; last_id: string | null; last_at: Date | null; found: number }
  >(
    `with found as materialized (
       select r.*, ${bytesOf("r.request")} as bytes, scanned.nth from (
         select id, fits, row_number() over (order by id desc)::int as nth from (${source(`coalesce(${fits}, false) as fits`)}) s
       ) scanned, lateral (
         select ${COLUMNS} from carillon.records r where r.tenant = $1 and r.id = scanned.id offset 0
       ) r where ${["scanned.fits", ...costlyOf(filters, bind)].join(" and ")} order by scanned.id desc limit ${bind(limit + 1)}
     ), total as materialized (
       select count(*)::int as found from found
     ), seen as materialized (
       select id from (${narrow}) s where (select found from total) <= ${bind(limit)}
     ), extent as (
       select count(*)::int as seen, (select id from seen order by id limit 1) as last_id from seen
     )
     select page.*, extent.*, carillon.time_of(extent.last_id) as last_at, total.found
     from extent cross join total left join ${fitting("found")} page on true order by page.id desc`,
    values,
  );
  const listed = rows.filter(({ id }) => id !== null).slice(0, limit);
  const records = listed.map(recordOf);
  const { found = 0, seen = 0, last_id = null, last_at = null } = rows[0] ?? {};
  const last = listed.at(-1);
  if (last && found > records.length) return { records, looked: last.nth, nextId: last.id, until: last.accepted_at };
  const isCut = seen === maxScanned && last_id !== null;
  return {
    records,
    looked: seen,
    nextId: isCut ? last_id : undefined,
    until: isCut ? (last_at ?? undefined) : undefined,
  };
}

/** The next so many, newest first: by `narrow` their ids, by `source` each with whether what stands in its own row fits. */
function sourceOf(filters: Filters, { beforeId, maxScanned }: Stretch, bind: (value: unknown) => string) {
  const within = ["n.tenant = $1"];
  if (beforeId) within.push(`n.id < ${bind(beforeId)}`);
  if (filters.id) within.push(`n.id = ${bind(filters.id)}`);
  if (filters.userId) within.push(`n.user_id = ${bind(filters.userId)}`);
  // The id carries the clock of the process that accepted, accepted_at the database's: a day of slack between them.
  if (filters.since) within.push(`n.id >= carillon.first_id(${bind(filters.since)}::timestamptz - interval '1 day')`);
  if (filters.until) within.push(`n.id < carillon.first_id(${bind(filters.until)}::timestamptz + interval '1 day')`);
  const most = bind(maxScanned);
  if (filters.status !== "failed" || filters.userId) {
    const select = (columns: string) =>
      `select ${columns} from carillon.notifications n where ${within.join(" and ")} order by n.id desc limit ${most}`;
    return { narrow: select("n.id"), source: (fits: string) => select(`n.id, ${fits}`) };
  }
  // Whatever has failed is in an index.
  const events = within.map((one) => one.replaceAll("n.id", "notification_id").replaceAll("n.tenant", "tenant"));
  const narrow = `select distinct notification_id as id from carillon.events where to_status = 'failed' and ${events.join(" and ")}
    order by notification_id desc limit ${most}`;
  const source = (fits: string) => `select f.id, ${fits} from (${narrow}) f cross join lateral (
      select n.accepted_at, n.channel, n.priority, n.request from carillon.notifications n where n.tenant = $1 and n.id = f.id
    ) n`;
  return { narrow, source };
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
