// Takes what is ready out of its lanes, as one row of claims.

import type { Claimed, Lease } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import type { Queue, Takes } from "#queue/queue.ts";
import { bytesOf } from "#record/request-bytes.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";
import type { Claim } from "./handle.ts";
import { createBacklog } from "./head.ts";
import type { Gone, LetGo } from "./settle.ts";

// Two probes per lane, so that an empty lane costs nothing: what waited for its time goes first, then what came. Rows of ready
// are locked here and never updated, so ctid finds them; those of later may have been, by whoever writes SQL.
// What was picked is read in one order everywhere: places in the claim are counted from that. The limit of one keeps the planner
// from anything but a probe per row. Columns as JSON cost the driver half of what rows do; a hundred at a time, so
// that large requests are not put together into one enormous answer. Of what was picked only the first are taken that come to
// MOST_BYTES between them, or else one tenant's large requests would be more than the process can hold; the others stay where they
// are.
const CHUNK = 100;
const MOST_BYTES = 16 * 1024 * 1024;
const numbersOf = (channels: string) =>
  `array(select carillon.queue_pool(c, 0::smallint) from unnest(${channels}) as c)`;
const PAUSED = (kind: string) =>
  `array(select name from carillon.pauses where kind = '${kind}' and (until is null or until > carillon.now()))`;
const IS_TAKEN = `($6::text[] is null or pool % 16 = any (array[0::smallint] || ${numbersOf("$6::text[]")}))
  and (pool = 0 or pool % 16 <> all (${numbersOf(PAUSED("channel"))}))
  and ($7::text[] is null or tenant = any (array(select t.id from carillon.tenants t where t.name = any ($7))))
  and tenant <> all ($8::integer[] || array(select t.id from carillon.tenants t where t.name = any (${PAUSED("tenant")})))
  and ($9::text[] is null or pool / 16 = any (array(select 0 union all select r.id from carillon.regions r where r.name = any ($9))))`;
const CLAIM = `
  with picked as materialized (
    select r.* from unnest($4::smallint[], $5::bigint[]) as l(lane, head)
    cross join lateral (
      select * from (
        select due_at, ctid as place, seq, priority, tenant, id, (attempt + 1)::smallint as attempt, expires_at
        from carillon.later where priority = lane and due_at <= carillon.now() and ${IS_TAKEN}
        order by due_at limit $2 for update skip locked
      ) due
      union all
      select * from (
        select null::timestamptz, ctid, seq, priority, tenant, id, (attempt + 1)::smallint, expires_at
        from carillon.ready where priority = lane and seq >= head and ${IS_TAKEN} order by seq limit $2 for update skip locked
      ) ready
    ) r where lane <> all (array(select priority from carillon.queue_pauses)) limit $2
  ), taken as materialized (
    select * from (
      select p.*, n.accepted_at, n.request, n.size,
        sum(n.size) over (rows between unbounded preceding and 1 preceding) as before
      from picked p left join lateral (
        select accepted_at, request, ${bytesOf("request")} as size
        from carillon.notifications n where n.tenant = p.tenant and n.id = p.id limit 1
      ) n on true
    ) p where coalesce(before, 0) < ${MOST_BYTES}
  ), gone as (
    delete from carillon.ready where ctid = any (array(select place from taken where due_at is null))
  ), due as (
    delete from carillon.later where seq = any (array(select seq from taken where due_at is not null))
  ), c as (
    insert into carillon.claims (token, worker, started_at, lease_until, first_seq, last_seq, done,
      seqs, priorities, tenants, ids, attempts, expiries)
    select nextval('carillon.lease_token'), $1, carillon.now(), clock_timestamp() + $3 * interval '1 ms', min(seq), max(seq),
      repeat('0', count(*)::integer)::bit varying, array_agg(seq), array_agg(priority), array_agg(tenant), array_agg(id),
      array_agg(attempt), array_agg(expires_at)
    from taken having count(*) > 0
    returning token, cardinality(seqs) as size
  )
  select c.token::float8 as token, ${ms("carillon.now()")} as now, chunk.*,
    (select min(seq)::float8 from taken where due_at is null and priority = (select max(priority) from taken)) as first
  from c cross join generate_series(0, c.size - 1, ${CHUNK}) as start
  cross join lateral (
    select json_agg(p.seq) as seqs, json_agg(p.tenant) as tenants, json_agg(p.id) as ids, json_agg(p.priority) as ranks,
      json_agg(p.attempt) as numbers, json_agg(p.request) as requests, sum(p.size)::float8 as bytes,
      json_agg((${ms("coalesce(p.due_at, p.accepted_at)")})::bigint) as sinces,
      json_agg((${ms("p.expires_at")})::bigint) as expiries
    from (select * from taken offset start limit ${CHUNK}) p
  ) chunk`;

/** Of what is claimed, a column an array. */
type Chunk = {
  token: number;
  now: number;
  seqs: number[];
  tenants: number[];
  ids: string[];
  ranks: number[];
  numbers: number[];
  requests: (NotificationRequest | null)[];
  bytes: number | null;
  sinces: number[];
  expiries: (number | null)[];
  /** The first of the lane in which the claim ended, of those that did not wait for their time. */
  first: number | null;
};

const ALL: Takes = { ranks: PRIORITIES.map((_, rank) => rank) };

export function createClaim(db: Queryable, monotonic: () => number, letGo: LetGo): Queue["claim"] {
  const backlog = createBacklog();
  return async (worker, count, leaseMs, takes = ALL) => {
    const { ranks, channels, tenants, notTenants, regions } = takes;
    // Read before the statement starts: our idea of the lease's end is then never later than the database's.
    const claimedAt = monotonic();
    const head = backlog.head(claimedAt);
    const { rows: chunks } = await db.query<Chunk>({
      name: "carillon-claim",
      text: CLAIM,
      values: [
        ...[worker, count, leaseMs, ranks, ranks.map((rank) => (rank === head?.rank ? head.seq : 0))],
        ...[channels, tenants, notTenants ?? [], regions],
      ],
    });
    const size = chunks.reduce((sum, { seqs }) => sum + seqs.length, 0);
    if (ranks.length === ALL.ranks.length) {
      const [rank, seq] = [chunks.at(-1)?.ranks.at(-1), chunks[0]?.first];
      const isFull = size === count && rank !== undefined && typeof seq === "number";
      backlog.found(head, claimedAt, isFull ? { rank, seq } : undefined);
    }
    const { token = 0, now: claimedAtMs = 0 } = chunks[0] ?? {};
    const bytes = chunks.reduce((sum, chunk) => sum + (chunk.bytes ?? 0), 0);
    const handle: Claim = { token, size };
    const meanBytes = size > 0 ? bytes / size : 0;
    const lease: Lease = { handle, meanBytes, endsAt: claimedAt + leaseMs, claimedAtMs, claimedAt };
    const attempts: Claimed[] = [];
    const gone: Gone[] = [];
    let place = 0;
    for (const chunk of chunks) {
      for (const [n, request] of chunk.requests.entries()) {
        if (request) attempts.push(attemptIn(chunk, n, request, lease, place));
        else gone.push({ attempt: { id: chunk.ids[n] as string, lease, handle: place } });
        place++;
      }
    }
    await letGo(gone);
    return attempts;
  };
}

function attemptIn(chunk: Chunk, n: number, request: NotificationRequest, lease: Lease, place: number): Claimed {
  return {
    seq: chunk.seqs[n] as number,
    lease,
    handle: place,
    tenant: chunk.tenants[n] as number,
    id: chunk.ids[n] as string,
    rank: chunk.ranks[n] as number,
    number: chunk.numbers[n] as number,
    request,
    sinceMs: chunk.sinces[n] as number,
    expiresAtMs: chunk.expiries[n] ?? undefined,
  };
}
