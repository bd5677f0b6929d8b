// What streams read: which inboxes changed, and what is new in them.

import type { Inbox, InboxItem } from "#domain/inbox.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ITEM, UNREAD } from "./inbox.ts";

/** What a look saw; the next look begins from it. */
export type Look = {
  snapshot: string;
  changed: readonly Inbox[];
  /** The database is older than at the last look: it was restored, or a standby took over that had not caught up. */
  isOlder: boolean;
};

/** The inboxes that changed since the last look. Without one it only says where the next shall begin. */
export async function lookForNews(db: Queryable, last: string | undefined): Promise<Look> {
  const { rows } = await db.query<{ snapshot: string; older: boolean; changed: [number, string][] | null }>({
    name: "carillon-inbox-changed",
    text: "select snapshot::text as snapshot, is_older as older, changed from carillon.changed_inboxes($1)",
    values: [last ?? null],
  });
  const { snapshot = "", older = false, changed } = rows[0] ?? {};
  return { snapshot, isOlder: older, changed: (changed ?? []).map(([tenant, userId]) => ({ tenant, userId })) };
}

export type News = {
  /** Zero while nothing was ever in it. */
  epoch: number;
  lastSeq: number;
  /** Items up to this one may be gone. */
  forgottenSeq: number;
  unread: number;
  /** In order, from the first after what was asked for; as many as fit, and at least one if there is any. */
  items: InboxItem[];
};
export type Reading = Inbox & { afterSeq: number };

/** Of one inbox in one reading: bodies may be large, and many are read together. */
const MOST_ITEMS = 100;
const MOST_BYTES = 65_536;

type Row = { n: number; epoch: number; lastSeq: number; forgottenSeq: number; unread: number } & (
  | InboxItem
  | { [name in keyof InboxItem]: null }
);

/** What is new in many inboxes, each from its own place, in one statement and so at one instant; in the order asked. */
export async function readNews(db: Queryable, readings: readonly Reading[]): Promise<News[]> {
  const { rows } = await db.query<Row>({
    name: "carillon-inbox-news",
    text: `select r.n::int as n, b.epoch::float8 as epoch, b.last_seq::float8 as "lastSeq",
        b.forgotten_seq::float8 as "forgottenSeq", ${UNREAD} as unread, i.*
      from unnest($1::int[], $2::text[], $3::bigint[]) with ordinality as r(tenant, user_id, after, n)
      join carillon.inboxes b on b.tenant = r.tenant and b.user_id = r.user_id
      left join lateral (
        select ${ITEM} from (
          select *, sum(coalesce(octet_length(body), 0) + coalesce(octet_length(data::text), 0)) over (order by seq)
            - coalesce(octet_length(body), 0) - coalesce(octet_length(data::text), 0) as bytes_before
          from (
            select * from carillon.inbox_items p
            where p.tenant = r.tenant and p.user_id = r.user_id and p.seq > r.after order by p.seq limit ${MOST_ITEMS}
          ) p
        ) i where bytes_before < ${MOST_BYTES}
      ) i on true order by r.n, i.seq`,
    values: [
      readings.map(({ tenant }) => tenant),
      readings.map(({ userId }) => userId),
      readings.map(({ afterSeq }) => afterSeq),
    ],
  });
  const news = readings.map((): News => ({ epoch: 0, lastSeq: 0, forgottenSeq: 0, unread: 0, items: [] }));
  for (const { n, epoch, lastSeq, forgottenSeq, unread, ...item } of rows) {
    const one = news[n - 1];
    if (!one) continue;
    Object.assign(one, { epoch, lastSeq, forgottenSeq, unread });
    if (item.id !== null) one.items.push(item);
  }
  return news;
}
