// Writes what attempts came to, and marks their places in their claims.

import type { Attempt, Ended } from "#domain/attempt.ts";
import type { Queryable } from "#store/connection/database.ts";
import { claimOf, placeOf } from "./handle.ts";
import { arrayText, columnsOf } from "./settled-columns.ts";

const POOL =
  "carillon.queue_pool(channel, coalesce((select r.id from carillon.regions r where r.name = region), 0::smallint))";

// A claim that was swept meanwhile has another token when its lock is free.
const SETTLE = `
  with c as materialized (
    select c.*, c.done | m.mask as after from unnest($1::bigint[], $2::bit varying[]) as m(token, mask)
    cross join lateral (
      select token, worker, started_at, done, engine, given from carillon.claims where token = m.token for update
    ) c
  ), ended as (
    delete from carillon.claims where token = any (array(select token from c where bit_count(after) = length(after)))
  ), marked as (
    update carillon.claims set done = (select after from c where c.token = claims.token)
    where token = any (array(select token from c where bit_count(after) < length(after)))
  ), held as materialized (
    select s.*, c.worker, c.started_at, c.engine from unnest($3::bigint[], $4::integer[], $5::uuid[], $6::integer[], $7::smallint[],
      $8::carillon.status[], $9::text[], $10::text[], $11::real[], $12::text[], $13::integer[], $14::text[], $15::real[], $16::json[],
      $17::integer[], $18::bigint[], $19::smallint[], $20::float8[], $21::float8[], $22::smallint[], $23::text[], $24::text[], $25::text[], $26::smallint[])
      as s(token, place, id, tenant, attempt, status, outcome, provider, latency, receipt, owner, error, cost, detail, author,
        seq, priority, expires, wait, given_back, channel, region, waits_for, kind)
    cross join lateral (
      select worker, started_at, case when engine is not null and get_bit(given, s.place) = 1 then engine end as engine
      from c where c.token = s.token and get_bit(c.done, s.place) = 0
    ) c
  ), recorded as (
    insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, token, worker, started_at,
      provider, outcome, error, latency_ms, cost, detail, engine)
    select id, tenant, 'attempt', 'processing', status, attempt, token, coalesce(author, worker), started_at, provider, outcome,
      error, latency, cost, detail, engine
    from held where outcome is not null
  ), counted as materialized (
    select kind, count(*), coalesce(sum(cost::numeric), 0) as cost from held where kind is not null group by kind
  ), said as materialized (
    select set_config('carillon.counts', coalesce((
      select json_agg(json_build_array(k, count, cost))::text from counted join json_array_elements($27) with ordinality as kinds(k, kind) using (kind)
      where (select carillon.worth_it(count(*), sum(count)) from counted)
    ), ''), true)
  ), tracked as (
    insert into carillon.receipts (provider, owner, receipt, tenant, notification_id)
    select provider, coalesce(owner, 0), receipt, tenant, id from held where receipt is not null on conflict do nothing
  ), waiting as (
    insert into carillon.later (seq, due_at, priority, tenant, id, attempt, expires_at, pool, waits_for)
    select seq, carillon.now() + wait * interval '1 ms', priority, tenant, id, attempt - given_back, to_timestamp(expires / 1000), ${POOL},
      waits_for
    from held where status = 'pending'
  ), back as (
    insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at, pool)
    select priority, seq, tenant, id, attempt - given_back, to_timestamp(expires / 1000), ${POOL} from held where status = 'queued'
  )
  select token::float8 as token, done::text as done from c cross join said`;

/** What a claim holds a place for, and the record does not know. */
export type Gone = { attempt: Pick<Attempt, "id" | "lease" | "handle"> };
export type LetGo = (gone: readonly Gone[]) => Promise<void>;

export async function settle(db: Queryable, batch: readonly Ended[]): Promise<boolean[]> {
  const { masks, once } = masksOf(batch);
  const done = await mark(db, masks, once);
  const isHeld = ({ attempt }: Ended) => done.get(claimOf(attempt.lease).token)?.[placeOf(attempt)] === "0";
  if (once.length === batch.length) return batch.map(isHeld);
  const firsts = new Set(once);
  return batch.map((settled) => firsts.has(settled) && isHeld(settled));
}

/** What is gone from the record can be neither sent nor told of. Unless its place is marked, its claim never ends. */
export async function letGo(db: Queryable, gone: readonly Gone[]): Promise<void> {
  // A claim that was made must not fail for this. What is not marked now comes up again when it is swept.
  await mark(db, masksOf(gone).masks, []).catch(() => undefined);
}

/** Marks places in claims, and writes what is told of them. Answers with what was marked before, by token. */
async function mark(db: Queryable, masks: Map<number, string[]>, told: readonly Ended[]): Promise<Map<number, string>> {
  const tokens = [...masks.keys()].sort((a, b) => a - b);
  const { rows } = await db.query<{ token: number; done: string }>({
    name: "carillon-settle",
    text: SETTLE,
    values: [arrayText(tokens), arrayText(tokens.map((token) => masks.get(token)?.join("") ?? "")), ...columnsOf(told)],
  });
  return new Map(rows.map((row) => [row.token, row.done]));
}

/** For each claim, the places of what is settled; and the batch without what it says twice. */
function masksOf<One extends { attempt: Pick<Attempt, "lease" | "handle"> }>(
  batch: readonly One[],
): { masks: Map<number, string[]>; once: readonly One[] } {
  const masks = new Map<number, string[]>();
  const once: One[] = [];
  for (const settled of batch) {
    const place = placeOf(settled.attempt);
    const { token, size } = claimOf(settled.attempt.lease);
    let mask = masks.get(token);
    if (!mask) {
      mask = Array<string>(size).fill("0");
      masks.set(token, mask);
    }
    if (mask[place] === "1") continue;
    mask[place] = "1";
    once.push(settled);
  }
  return { masks, once };
}
