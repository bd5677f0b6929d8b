// Inboxes as they are stored and marked.

import type { Inbox, InboxItem, NewItem, Position } from "#domain/inbox.ts";
import type { Queryable } from "#store/connection/database.ts";

export const ITEM = `i.notification_id as id, i.seq::float8 as seq, i.category, i.title, i.body, i.data, i.link,
  i.created_at as "createdAt", i.read_at as "readAt", i.archived_at as "archivedAt"`;
/** Streams count for many users in one statement. */
const MOST_UNREAD = 10_000;
export const UNREAD = `(select count(*)::int from (
    select from carillon.inbox_items u where u.tenant = b.tenant and u.user_id = b.user_id and u.read_at is null
      and u.archived_at is null limit ${MOST_UNREAD}
  ) u)`;

/** In one commit. A notification that has its item already makes no second one. */
export async function storeItems(db: Queryable, items: readonly NewItem[]): Promise<void> {
  const rows = items.map(({ id, tenant, userId, category, title, body, data, link }) => ({
    i: id,
    t: tenant,
    u: userId,
    c: category,
    h: title,
    b: body,
    d: data,
    l: link,
  }));
  await db.query({
    name: "carillon-inbox-store",
    text: "select carillon.store_items($1)",
    values: [JSON.stringify(rows)],
  });
}

export type ItemFilter = { category?: string; isUnread?: boolean; isArchived: boolean };

/** The newest first, from below `before`. */
export async function listItems(
  db: Queryable,
  { tenant, userId }: Inbox,
  { category, isUnread = false, isArchived }: ItemFilter,
  before: number | undefined,
  limit: number,
): Promise<InboxItem[]> {
  const { rows } = await db.query<InboxItem>(
    `select ${ITEM} from carillon.inbox_items i where i.tenant = $1 and i.user_id = $2 and ($3::bigint is null or i.seq < $3)
       and ($4::text is null or i.category = $4) and (i.archived_at is not null) = $5 and (not $6 or i.read_at is null)
     order by i.seq desc limit $7`,
    [tenant, userId, before ?? null, category ?? null, isArchived, isUnread, limit],
  );
  return rows;
}

export type Standing = Position & { unread: number };

/** Where an inbox stands; undefined as long as nothing was ever in it. */
export async function readStanding(db: Queryable, { tenant, userId }: Inbox): Promise<Standing | undefined> {
  const { rows } = await db.query<Standing>({
    name: "carillon-inbox-standing",
    text: `select b.epoch::float8 as epoch, b.last_seq::float8 as seq, ${UNREAD} as unread
      from carillon.inboxes b where b.tenant = $1 and b.user_id = $2`,
    values: [tenant, userId],
  });
  return rows[0];
}

export type Mark =
  | { verb: "ack" | "read" | "archive"; ids: readonly string[] }
  | { verb: "read-all"; category?: string }
  /** Everything up to this number has arrived. */
  | { verb: "position"; seq: number };

/** Of one call. The inbox is locked meanwhile, and whoever stores items for many users waits. */
export const MOST_MARKED = 1_000;

/** Answers with the notifications of the items that it changed; with as many as it may be, there may be more. */
export async function markItems(db: Queryable, { tenant, userId }: Inbox, mark: Mark): Promise<string[]> {
  const { rows } = await db.query<{ marked: string[] }>({
    name: "carillon-inbox-mark",
    text: "select carillon.mark_items($1, $2, $3, $4, $5, $6) as marked",
    values: [
      tenant,
      userId,
      mark.verb,
      "ids" in mark ? mark.ids : [],
      "category" in mark ? mark.category : null,
      "seq" in mark ? mark.seq : null,
    ],
  });
  return rows[0]?.marked ?? [];
}

export type Delivered = { moved: number; waiting: number };

/** Turns what was acknowledged from sent to delivered: these, or whatever has waited longest. What is not sent yet waits. */
export async function deliverAcked(db: Queryable, ids: readonly string[] | undefined, batch = 0): Promise<Delivered> {
  const { rows } = await db.query<Delivered>({
    name: "carillon-inbox-deliver",
    text: "select moved, waiting from carillon.deliver_acked($1, $2)",
    values: [ids ?? null, batch],
  });
  return rows[0] ?? { moved: 0, waiting: 0 };
}

export async function forgetItems(db: Queryable, days: number, batch: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    "select carillon.forget_items(carillon.now() - $1 * interval '1 day', $2) as n",
    [days, batch],
  );
  return rows[0]?.n ?? 0;
}

/**
 * Takes up to so many items out of an inbox that were put there by then; answers with how many. With the last goes the inbox itself, unless
 * something was put there since.
 */
export async function deleteItems(
  tx: Queryable,
  { tenant, userId }: Inbox,
  until: Date,
  most: number,
): Promise<number> {
  // Whoever stores items waits for this row.
  await tx.query("select from carillon.inboxes where tenant = $1 and user_id = $2 for update", [tenant, userId]);
  const { rowCount } = await tx.query(
    `delete from carillon.inbox_items where tenant = $1 and user_id = $2 and seq = any (array(
       select seq from carillon.inbox_items where tenant = $1 and user_id = $2 and created_at <= $3 order by seq limit $4))`,
    [tenant, userId, until, most],
  );
  if (rowCount === most) return most;
  await tx.query(
    `with gone as (
       delete from carillon.inboxes where tenant = $1 and user_id = $2
         and not exists (select from carillon.inbox_items where tenant = $1 and user_id = $2) returning 1
     )
     update carillon.inboxes set changed_xid = pg_current_xact_id(), changed_at = carillon.now(), forgotten_seq = greatest(forgotten_seq, (
         select min(seq) - 1 from carillon.inbox_items where tenant = $1 and user_id = $2))
     where tenant = $1 and user_id = $2 and not exists (select from gone)`,
    [tenant, userId],
  );
  return rowCount ?? 0;
}
