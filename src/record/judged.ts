// Dead letters as a plan sees them: which event made each one, and why it had better be left alone.
//
// A plan is for very many. So they come column by column in one row, which is read several times as fast as a row for each; and what needs more
// than a look at the letter itself is asked for all of them at once.

import { isAtOnce, type PlanKind, type Reason, reasonFor, recordTenantOf } from "#domain/plan.ts";
import type { Queryable } from "#store/connection/database.ts";
import { findSuppressed, hasSuppressionsOf, suppressionKey } from "#store/suppressions.ts";
import { conditionsOf, type DeadLetterFilter } from "./dead-letters.ts";
import { findReached } from "./reached.ts";

export type Judged = {
  id: string;
  /** The number of its last event, null where there is none. */
  seq: string | null;
  channel: string | null;
  provider: string | null;
  /** Null: it can be seen to. */
  reason: Reason | null;
};
/** `address` and `userId` are there only where it matters who it was for. */
type Letter = Judged & { address: string | null; userId: string | null; templateId: string | null };
type Columns = { [column in keyof Letter]: Letter[column][] | null };

/**
 * Of a dead letter `r`: what speaks against seeing to it, by itself. Few weeks are ever restored, so that is asked once. Few requests have been
 * forgotten: those that say nothing like it are not taken apart.
 */
const AGAINST = `case
  when (select exists (select from carillon.archive_weeks where state = 'restored')) and carillon.is_restored(l.id) then 'restored'
  when strpos(r.request::text, '"forgotten"') > 0 and r.request ->> 'forgotten' is not null then 'forgotten'
  when r.expires_at <= carillon.now() then 'expired'
end`;

/** $2: whether addresses matter; $3: whether users do, which is where there is a template. */
const LETTER = (reason: string) => `l.id, e.seq, r.channel, e.provider, ${reason} as reason,
  case when $2 then coalesce(r.request #>> '{recipient,email}', r.request #>> '{recipient,phone}') end as address,
  case when $3 and r.user_id is not null and strpos(r.request::text, '"templateId"') > 0 then r.request #>> '{content,templateId}' end as "templateId",
  r.user_id as "userId"`;
const LAST = `(
  select e.seq, e.at, e.type, e.to_status, e.provider, e.outcome, e.error from carillon.events e where e.notification_id = l.id order by e.seq desc, e.at desc limit 1
) e`;
/** All `letters` in one row. */
const COLUMNS = (order: string) => `
  select json_agg(id) as id, json_agg(seq::text) as seq, json_agg(channel) as channel, json_agg(provider) as provider,
    case when count(reason) > 0 then json_agg(reason) end as reason, case when $2 then json_agg(address) end as address,
    case when count("templateId") > 0 then json_agg("templateId") end as "templateId",
    case when count("templateId") > 0 then json_agg("userId") end as "userId"
  from (select * from letters order by ${order}) l`;

/** Whose, and what is to be done with them. */
export type For = { tenant: number; kind: PlanKind };
export type JudgedPage = { judged: Judged[]; looked: number; nextId: string | undefined };

/** Of the next `most` failures below `beforeId`, the newest first, those that are dead letters and fit the filter. */
export async function judgeFailed(
  db: Queryable,
  what: For,
  filter: DeadLetterFilter,
  { beforeId, most }: { beforeId: string | null; most: number },
): Promise<JudgedPage> {
  const values: unknown[] = [recordTenantOf(what), await mindsAddresses(db, what), what.kind === "requeue"];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const narrow = ["tenant = $1", "to_status = 'failed'"];
  if (beforeId !== null) narrow.push(`notification_id < ${bind(beforeId)}`);
  // Nothing fails before it was accepted; the id carries another clock.
  if (filter.until) {
    narrow.push(`notification_id < carillon.first_id(${bind(filter.until)}::timestamptz + interval '1 day')`);
  }
  const { rows } = await db.query<Columns & { looked: number; lastId: string | null }>(
    `with looked as materialized (
       select distinct notification_id as id from carillon.events where ${narrow.join(" and ")}
       order by notification_id desc limit ${bind(most)}
     ), extent as (
       select count(*)::int as looked, (select id from looked order by id limit 1) as last_id from looked
     ), letters as materialized (
       select ${LETTER(AGAINST)} from looked l cross join lateral ${LAST} cross join lateral (
         select * from carillon.notifications n where n.tenant = $1 and n.id = l.id offset 0
       ) r where ${conditionsOf(filter, bind).join(" and ")}
     )
     select extent.looked, extent.last_id as "lastId", c.* from extent cross join (${COLUMNS("id desc")}) c`,
    values,
  );
  const [row] = rows;
  if (!row) return { judged: [], looked: 0, nextId: undefined };
  const { looked, lastId, ...columns } = row;
  const judged = await judge(db, what, lettersIn(columns));
  return { judged, looked, nextId: looked === most ? (lastId ?? undefined) : undefined };
}

/** The same as judgeThese(), and they are locked until the transaction ends, so that what is true of them stays true. */
export async function judgeTheseAlone(tx: Queryable, what: For, ids: readonly string[]): Promise<Judged[]> {
  await tx.query(
    "select from carillon.notifications where tenant = $1 and id = any ($2::uuid[]) order by id for update",
    [recordTenantOf(what), ids],
  );
  return judgeThese(tx, what, ids);
}

/** Whoever names them has sent again also what ended otherwise than by a failure, and what is off the list. */
const RETRYABLE = "e.to_status in ('failed', 'ambiguous', 'expired', 'cancelled')";

/** These, in their order; each is there. */
export async function judgeThese(db: Queryable, what: For, ids: readonly string[]): Promise<Judged[]> {
  const { kind } = what;
  const reason = `case
    when r.id is null then 'gone'
    ${isAtOnce(kind) ? `when ${RETRYABLE} then ${AGAINST}` : ""}
    when e.to_status is null or e.to_status in ('queued', 'pending', 'processing') then 'waiting'
    when e.to_status in ('sent', 'delivered', 'ambiguous') then 'sent'
    when e.to_status <> 'failed' then 'ended'
    when e.type = 'purged' then 'purged'
    else ${AGAINST} end`;
  const { rows } = await db.query<Columns>(
    `with letters as materialized (
       select l.place, ${LETTER(reason)} from unnest($4::uuid[]) with ordinality as l(id, place) left join lateral (
         select * from carillon.notifications n where n.tenant = $1 and n.id = l.id
       ) r on true left join lateral ${LAST} on r.id is not null
     )
     ${COLUMNS("place")}`,
    [recordTenantOf(what), await mindsAddresses(db, what), kind === "requeue", ids],
  );
  return judge(db, what, lettersIn(rows[0]));
}

const mindsAddresses = async (db: Queryable, { tenant, kind }: For): Promise<boolean> =>
  kind === "requeue" && (await hasSuppressionsOf(db, tenant));

function lettersIn(columns: Columns | undefined): Letter[] {
  const { id, seq, channel, provider, reason, address, userId, templateId } = columns ?? {};
  return (id ?? []).map((one, n) => ({
    id: one,
    seq: seq?.[n] ?? null,
    channel: channel?.[n] ?? null,
    provider: provider?.[n] ?? null,
    reason: reason?.[n] ?? null,
    address: address?.[n] ?? null,
    userId: userId?.[n] ?? null,
    templateId: templateId?.[n] ?? null,
  }));
}

/** To send again what was sent since, or to those who want nothing more, is worse than not to. */
async function judge(db: Queryable, { tenant, kind }: For, letters: readonly Letter[]): Promise<Judged[]> {
  const open = letters.filter(({ reason }) => reason === null);
  const reached = await findReached(db, tenant, open);
  const wanted = open.flatMap(({ address }) => (address === null ? [] : [{ tenant, address }]));
  const suppressed = wanted.length === 0 ? new Map() : await findSuppressed(db, wanted);
  const judged = (letter: Letter): Reason | null => {
    const { address } = letter;
    if (reached.has(letter)) return "reached";
    return address !== null && suppressed.has(suppressionKey(tenant, address)) ? "suppressed" : null;
  };
  return letters.map((letter) => {
    const { id, seq, channel, provider, reason } = letter;
    return { id, seq, channel, provider, reason: reasonFor(kind, reason ?? judged(letter)) };
  });
}
