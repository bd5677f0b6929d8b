// Everything that is known of a user, a page at a time.
//
// Parts come one after the other, each in the order of its keys; a cursor is the part and the last key that was looked at. So a person with a
// million notifications costs no more memory than one with ten, nor does one with very long ones.

import type { Queryable } from "#store/connection/database.ts";
import { KEYS, NAMES, type NoticeTable } from "#store/named.ts";
import { MOST_BYTES } from "./page.ts";

/** `kind` says what it is; the rest is as it is kept. */
export type Known = { kind: string; [field: string]: unknown };
export type KnownPage = { data: Known[]; next: string | undefined };

type Part = {
  kind: string;
  /** Answers with the key of each, and the item: null where it was looked at and is somebody else's. $1 tenant, $2 user, $3 after, $4 how many. */
  sql: string;
  first: string;
};

const EVENTS = `(select json_agg(json_strip_nulls(json_build_object('type', h.type, 'at', h.at, 'from', h.from_status, 'to', h.to_status,
    'attempt', h.attempt, 'provider', h.provider, 'outcome', h.outcome, 'error', h.error, 'detail', h.detail)) order by h.seq, h.at)
  from carillon.history h where h.tenant = n.tenant and h.notification_id = n.id)`;
const SUPPRESSIONS = `(select json_agg(json_build_object('address', s.address, 'why', s.why, 'reason', s.reason, 'at', s.at))
  from carillon.suppressions s where s.tenant = n.tenant
    and s.address in (lower(n.request #>> '{recipient,email}'), n.request #>> '{recipient,phone}'))`;
const MESSAGES = `(select json_agg(json_build_object('message', d.message, 'at', d.at)) from carillon.dev_messages d
  where d.tenant = n.tenant and d.notification_id = n.id)`;
/** Who else is to have it is nobody's business. */
const OWN_NOTICE = `case json_typeof(notice -> 'recipients') when 'array' then (notice::jsonb || jsonb_build_object('recipients', (
    select jsonb_agg(r) from jsonb_array_elements(notice::jsonb -> 'recipients') r where r ->> 'userId' = $2)))::json else notice end`;
const noticePart = (
  table: NoticeTable,
  fields: string,
) => `select ${KEYS[table]} as place, case when ${NAMES} then json_strip_nulls(json_build_object(
    ${fields}, 'notification', ${OWN_NOTICE})) end as item
  from carillon.${table} where tenant = $1 and ${KEYS[table]} > $3 order by 1 limit $4`;
const KEPT = "'key', key, 'createdAt', created_at, 'updatedAt', updated_at";

const PARTS: readonly Part[] = [
  {
    kind: "notification",
    first: "00000000-0000-0000-0000-000000000000",
    sql: `select n.id::text as place, json_strip_nulls(json_build_object('notificationId', n.id, 'status', n.status, 'acceptedAt', n.accepted_at,
        'request', n.request, 'events', ${EVENTS}, 'suppressions', ${SUPPRESSIONS}, 'devMessages', ${MESSAGES})) as item
      from (select id from carillon.notifications where tenant = $1 and user_id = $2 and id > $3::uuid order by id limit $4) page
      cross join lateral (select * from carillon.records r where r.tenant = $1 and r.id = page.id offset 0) n order by n.id`,
  },
  {
    kind: "inbox item",
    first: "0",
    sql: `select i.seq::text as place, json_strip_nulls(json_build_object('notificationId', i.notification_id, 'category', i.category,
        'title', i.title, 'body', i.body, 'data', i.data, 'link', i.link, 'createdAt', i.created_at, 'readAt', i.read_at,
        'archivedAt', i.archived_at)) as item
      from carillon.inbox_items i where i.tenant = $1 and i.user_id = $2 and i.seq > $3::bigint order by i.seq limit $4`,
  },
  {
    kind: "device",
    first: "",
    sql: `select d.token as place, json_strip_nulls(json_build_object('token', d.token, 'platform', d.platform, 'subscription', d.subscription,
        'createdAt', d.created_at, 'updatedAt', d.updated_at, 'deadAt', d.dead_at, 'deadReason', d.dead_reason)) as item
      from carillon.devices d where d.tenant = $1 and d.user_id = $2 and d.token > $3 order by d.token limit $4`,
  },
  { kind: "schedule", first: "", sql: noticePart("schedules", KEPT) },
  { kind: "reminder", first: "", sql: noticePart("reminders", KEPT) },
  { kind: "broadcast", first: "", sql: noticePart("broadcasts", "'schedule', run_key") },
];

/** From the beginning, or from where an earlier page ended. Undefined where the cursor is none of ours. */
export async function readKnown(
  db: Queryable,
  tenant: number,
  userId: string,
  cursor: string | undefined,
  limit: number,
): Promise<KnownPage | undefined> {
  const place = placeOf(cursor);
  if (!place) return undefined;
  const { part, after } = place;
  const { kind, sql } = PARTS[part] as Part;
  const { rows } = await db.query<{ place: string; item: object | null; found: number }>(
    `select place, item, found from (
       select p.*, count(*) over ()::int as found,
         sum(octet_length(item::text)) over (order by n rows between unbounded preceding and 1 preceding) as before
       from (select p.*, row_number() over () as n from (${sql}) p) p
     ) p where coalesce(before, 0) < ${MOST_BYTES} order by n`,
    [tenant, userId, after, limit],
  );
  const data = rows.flatMap(({ item }) => (item ? [{ kind, ...item }] : []));
  const last = rows.at(-1);
  if (last && (last.found === limit || rows.length < last.found)) return { data, next: cursorOf(part, last.place) };
  const following = PARTS[part + 1];
  return { data, next: following && cursorOf(part + 1, following.first) };
}

const cursorOf = (part: number, after: string): string => Buffer.from(`${part} ${after}`).toString("base64url");

function placeOf(cursor: string | undefined): { part: number; after: string } | undefined {
  if (cursor === undefined) return { part: 0, after: PARTS[0]?.first ?? "" };
  const [, number = "", after = ""] = /^(\d) (.*)$/s.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  const part = number === "" ? -1 : Number(number);
  if (!PARTS[part] || after.includes("\0")) return undefined;
  const isWhole = [/^[0-9a-f-]{36}$/, /^\d{1,18}$/][part]?.test(after) ?? true;
  return isWhole ? { part, after } : undefined;
}
