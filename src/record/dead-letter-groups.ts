// Dead letters by what they have in common: the cause, who said so, and the channel.

import type { Channel } from "#domain/notification.ts";
import type { Queryable } from "#store/connection/database.ts";
import { conditionsOf, type DeadLetterFilter } from "./dead-letters.ts";

export type Group = {
  cause: string | null;
  provider: string | null;
  channel: Channel;
  outcome: string | null;
  count: number;
  newestAt: Date;
  oldestAt: Date;
  /** The newest few. */
  ids: string[];
};
export type Groups = {
  groups: Group[];
  found: number;
  looked: number;
  nextId: string | undefined;
  until: Date | undefined;
};

const EXAMPLES = 3;

/**
 * Of the next `maxScanned` failures below `beforeId`, those that are dead letters and fit, in groups, the largest first, `limit` of them.
 * `found` counts the dead letters of all groups.
 */
export async function readDeadLetterGroups(
  db: Queryable,
  tenant: number,
  filter: DeadLetterFilter,
  { beforeId, limit, maxScanned }: { beforeId: string | undefined; limit: number; maxScanned: number },
): Promise<Groups> {
  const values: unknown[] = [tenant];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const below = beforeId ? `and notification_id < ${bind(beforeId)}` : "";
  const { rows } = await db.query<
    Group & { found: number; looked: number; lastId: string | null; lastAt: Date | null }
  >(
    `with looked as materialized (
       select distinct notification_id as id from carillon.events where tenant = $1 and to_status = 'failed' ${below}
       order by notification_id desc limit ${bind(maxScanned)}
     ), extent as (
       select count(*)::int as looked, (select id from looked order by id limit 1) as last_id from looked
     ), found as materialized (
       select l.id, r.channel, e.provider, e.outcome, e.at, carillon.cause_of(e.error) as cause from looked l cross join lateral (
         select * from carillon.notifications n where n.tenant = $1 and n.id = l.id offset 0
       ) r cross join lateral (
         select * from carillon.events e where e.notification_id = l.id order by e.seq desc, e.at desc limit 1
       ) e where ${conditionsOf(filter, bind).join(" and ")}
     ), groups as (
       select cause, provider, channel, outcome, count(*)::int as count, max(at) as "newestAt", min(at) as "oldestAt",
         (array_agg(id order by id desc))[1:${EXAMPLES}] as ids
       from found group by cause, provider, channel, outcome order by count(*) desc, max(at) desc limit ${bind(limit)}
     )
     select groups.*, (select count(*)::int from found) as found, extent.looked, extent.last_id as "lastId",
       carillon.time_of(extent.last_id) as "lastAt"
     from extent left join groups on true order by groups.count desc, groups."newestAt" desc`,
    values,
  );
  const { found = 0, looked = 0, lastId = null, lastAt = null } = rows[0] ?? {};
  const isCut = looked === maxScanned;
  return {
    groups: rows.filter(({ count }) => count !== null),
    found,
    looked,
    nextId: isCut ? (lastId ?? undefined) : undefined,
    until: isCut ? (lastAt ?? undefined) : undefined,
  };
}
