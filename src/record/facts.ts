// What the record says about facts, beyond what the feed says; and the facts of one notification.

import type { Fact, FactDetail } from "#domain/fact.ts";
import { priorityOf } from "#domain/priority.ts";
import type { Queryable } from "#store/connection/database.ts";
import { toldOf } from "./events.ts";
import { type FeedAsked, type FeedPage, factOf, numbersOf, type Told } from "./feed.ts";
import { wholeMs } from "./whole-ms.ts";

/**
 * An acceptance is no event of its own: it is read off the notification, as carillon.history has it, but with carillon.instant(), which costs a
 * subtransaction, only where there is an instant. With the first and the last id all partitions but theirs are left out at once, instead of for every fact.
 */
const DETAILS = `
  select json_agg(event) as event, json_agg("from") as "from", json_agg("to") as "to", json_agg(attempt) as attempt, json_agg(provider) as provider,
    json_agg(outcome) as outcome, json_agg(error) as error, json_agg(latency_ms) as "latencyMs", json_agg(cost) as cost, json_agg(detail) as detail,
    json_agg(${wholeMs("accepted_at")}) as "acceptedAt", json_agg(channel) as channel, json_agg(priority) as rank, json_agg(user_id) as "userId"
  from (
    select case when x.number > 0 then h.type when n.accepted_at is not null then 'accepted' end as event, h.from_status as "from",
      case when x.number > 0 then h.to_status when n.scheduled_for is null then n.queued
        when carillon.instant(n.scheduled_for) > n.accepted_at then 'pending' else n.queued end as "to",
      h.attempt, h.provider, h.outcome, h.error, h.latency_ms, h.cost::float8 as cost, h.detail, n.accepted_at, n.channel, n.priority, n.user_id
    from unnest($1::integer[], $2::uuid[], $3::bigint[]) with ordinality as x(tenant, id, number, nth)
    left join lateral (
      select channel, priority, user_id, accepted_at, 'queued'::carillon.status as queued,
        case when x.number = 0 then request ->> 'scheduledFor' end as scheduled_for
      from carillon.notifications n where n.tenant = x.tenant and n.id = x.id and n.id between $4 and $5
    ) n on true
    left join lateral (
      select * from carillon.events e
      where x.number > 0 and e.tenant = x.tenant and e.notification_id = x.id and e.seq = x.number and e.notification_id between $4 and $5 limit 1
    ) h on true
    order by x.nth
  ) found`;

/** A column an array: that costs the driver much less than rows do. */
type Columns = { [name in Exclude<keyof FactDetail, "priority" | "acceptedAt">]: FactDetail[name][] } & {
  rank: (number | null)[];
  acceptedAt: (number | null)[];
};

/** In the order of the facts. */
export async function findDetails(db: Queryable, facts: readonly Fact[]): Promise<FactDetail[]> {
  if (facts.length === 0) return [];
  const ids = facts.map(({ notificationId }) => notificationId);
  const { rows } = await db.query<Columns>({
    name: "carillon-fact-details",
    text: DETAILS,
    values: [
      facts.map(({ tenant }) => tenant),
      ids,
      facts.map(({ number }) => number),
      ids.reduce((least, id) => (id < least ? id : least)),
      ids.reduce((most, id) => (id > most ? id : most)),
    ],
  });
  const [columns] = rows;
  return columns ? facts.map((_, n) => detailIn(columns, n)) : [];
}

function detailIn(columns: Columns, n: number): FactDetail {
  const at = <Value>(column: readonly Value[]): Value => column[n] as Value;
  const [rank, detail, acceptedAt] = [at(columns.rank), at(columns.detail), at(columns.acceptedAt)];
  return {
    event: at(columns.event),
    from: at(columns.from),
    to: at(columns.to),
    attempt: at(columns.attempt),
    provider: at(columns.provider),
    outcome: at(columns.outcome),
    error: at(columns.error),
    latencyMs: at(columns.latencyMs),
    cost: at(columns.cost),
    detail: toldOf(detail),
    channel: at(columns.channel),
    priority: rank === null ? null : priorityOf(rank),
    userId: at(columns.userId),
    acceptedAt: acceptedAt === null ? null : new Date(acceptedAt),
  };
}

// A fact's own row has the instant of the statement that told it, and the feed is found by that.
const OF_ONE = `
  with here as materialized (
    select cluster, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon from carillon.epochs where epoch = $3
  )
  select f.key::float8 as key, f.seq::float8 as seq, f.size, f.at, x.ordinal::int as ordinal, $1::int as tenant,
    coalesce(x.type, f.types[1]) as type, x.id, coalesce(x.number, 0)::float8 as number
  from carillon.feed f cross join lateral unnest(f.types, f.ids, f.numbers) with ordinality as x(type, id, number, ordinal)
  where f.at = any (array(
      select at from carillon.history where tenant = $1 and notification_id = $2
      union select read_at from carillon.inbox_items where tenant = $1 and notification_id = $2 and read_at is not null))
    and f.cluster = (select cluster from here) and f.key < (select horizon from here) and x.id = $2
    and (f.key, f.seq, x.ordinal) > ($4::bigint, $5::bigint, $6::bigint)
    and ($7::smallint[] is null or coalesce(x.type, f.types[1]) = any ($7))
  order by f.key, f.seq, x.ordinal limit $8`;

export type FactsOfOneAsked = FeedAsked & { tenant: number; notificationId: string };

/** Of one notification, by the record, however much else happened. The position must be one that the feed takes. */
export async function readFactsOf(db: Queryable, asked: FactsOfOneAsked): Promise<FeedPage> {
  const { tenant, notificationId, after, types, limit } = asked;
  const { epoch, key, seq, ordinal } = after;
  const { rows } = await db.query<Told>({
    name: "carillon-facts-of-one",
    text: OF_ONE,
    values: [tenant, notificationId, epoch, key, seq, ordinal, types ? numbersOf(types) : null, limit],
  });
  const facts = rows.map((row) => factOf(epoch, row));
  return { kind: "page", facts, next: facts.at(-1)?.position ?? after, isAtEnd: facts.length < limit, epoch };
}
