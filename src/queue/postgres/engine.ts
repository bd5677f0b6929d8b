// The queue in PostgreSQL: one statement per verb.
//
// A claim takes rows out of ready and is itself one row, with what it holds in arrays: the lease, its token and its end are
// written once for a thousand notifications. A settlement writes the record and marks the places of what it settled; with the
// last of them the claim goes. So nothing here joins two large sets, and no plan depends on what the statistics
// happened to be. Claims are locked in order of their tokens everywhere, so verbs cannot deadlock.

import type { Attempt, Ended, Lease } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES, type Priority } from "#domain/priority.ts";
import type { Queue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type Claim, claimOf, placeOf } from "./handle.ts";
import { createBacklog } from "./head.ts";
import { notePostponed } from "./postponed.ts";
import { arrayText, columnsOf } from "./settled-columns.ts";

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

// Numbers, not timestamps: parsing a date costs the driver more than all the rest of the row.
const ms = (instant: string) => `date_part('epoch', ${instant}) * 1000`;

// Two probes per lane, so that an empty lane costs nothing: what waited for its time goes first, then what came. Rows of ready
// are locked here and never updated, so ctid finds them; those of schedule may have been, by whoever writes SQL.
// What was picked is read in one order everywhere: places in the claim are counted from that. The limit of one keeps the planner
// from anything but a probe per row. Columns as JSON cost the driver half of what rows do; a hundred at a time, so
// that large requests are not put together into one enormous answer. Of what was picked only the first are taken that come to
// MOST_BYTES between them, or else one tenant's large requests would be more than the process can hold; the others stay where they
// are. A request that PostgreSQL compressed says how long it is only when it is unpacked.
const CHUNK = 100;
const MOST_BYTES = 16 * 1024 * 1024;
const SIZE = `case when pg_column_compression(request) is null then pg_column_size(request) else octet_length(request::text) end`;
const CLAIM = `
  with picked as materialized (
    select r.* from unnest($4::smallint[], $5::bigint[]) as l(lane, head)
    cross join lateral (
      select * from (
        select due_at, ctid as place, seq, priority, tenant, id, (attempt + 1)::smallint as attempt, expires_at
        from carillon.later where priority = lane and due_at <= statement_timestamp()
        order by due_at limit $2 for update skip locked
      ) due
      union all
      select * from (
        select null::timestamptz, ctid, seq, priority, tenant, id, (attempt + 1)::smallint, expires_at
        from carillon.ready where priority = lane and seq >= head order by seq limit $2 for update skip locked
      ) ready
    ) r limit $2
  ), taken as materialized (
    select * from (
      select p.*, n.accepted_at, n.request, n.size,
        sum(n.size) over (rows between unbounded preceding and 1 preceding) as before
      from picked p left join lateral (
        select accepted_at, request, ${SIZE} as size
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
    select nextval('carillon.lease_token'), $1, clock_timestamp(), clock_timestamp() + $3 * interval '1 ms', min(seq), max(seq),
      repeat('0', count(*)::integer)::bit varying, array_agg(seq), array_agg(priority), array_agg(tenant), array_agg(id),
      array_agg(attempt), array_agg(expires_at)
    from taken having count(*) > 0
    returning token, cardinality(seqs) as size
  )
  select c.token::float8 as token, ${ms("statement_timestamp()")} as now, chunk.*,
    (select min(seq)::float8 from taken where due_at is null and priority = (select max(priority) from taken)) as first
  from c cross join generate_series(0, c.size - 1, ${CHUNK}) as start
  cross join lateral (
    select json_agg(p.seq) as seqs, json_agg(p.tenant) as tenants, json_agg(p.id) as ids, json_agg(p.priority) as ranks,
      json_agg(p.attempt) as numbers, json_agg(p.request) as requests, sum(p.size)::float8 as bytes,
      json_agg((${ms("coalesce(p.due_at, p.accepted_at)")})::bigint) as sinces,
      json_agg((${ms("p.expires_at")})::bigint) as expiries
    from (select * from taken offset start limit ${CHUNK}) p
  ) chunk`;

// A claim that was swept meanwhile has another token when its lock is free.
const SETTLE = `
  with c as materialized (
    select c.*, c.done | m.mask as after from unnest($1::bigint[], $2::bit varying[]) as m(token, mask)
    cross join lateral (
      select token, worker, started_at, done from carillon.claims where token = m.token for update
    ) c
  ), ended as (
    delete from carillon.claims where token = any (array(select token from c where bit_count(after) = length(after)))
  ), marked as (
    update carillon.claims set done = (select after from c where c.token = claims.token)
    where token = any (array(select token from c where bit_count(after) < length(after)))
  ), held as materialized (
    select s.*, c.worker, c.started_at from unnest($3::bigint[], $4::integer[], $5::uuid[], $6::integer[], $7::smallint[],
      $8::carillon.status[], $9::text[], $10::text[], $11::real[], $12::text[], $13::integer[], $14::text[], $15::real[], $16::json[],
      $17::integer[], $18::bigint[], $19::smallint[], $20::float8[], $21::float8[], $22::smallint[])
      as s(token, place, id, tenant, attempt, status, outcome, provider, latency, receipt, owner, error, cost, detail, author,
        seq, priority, expires, wait, given_back)
    cross join lateral (
      select worker, started_at from c where c.token = s.token and get_bit(c.done, s.place) = 0
    ) c
  ), recorded as (
    insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, token, worker, started_at,
      provider, outcome, error, latency_ms, cost, detail)
    select id, tenant, 'attempt', 'processing', status, attempt, token, coalesce(author, worker), started_at, provider, outcome,
      error, latency, cost, detail
    from held where outcome is not null
  ), tracked as (
    insert into carillon.receipts (provider, owner, receipt, tenant, notification_id)
    select provider, coalesce(owner, 0), receipt, tenant, id from held where receipt is not null on conflict do nothing
  ), waiting as (
    insert into carillon.later (seq, due_at, priority, tenant, id, attempt, expires_at)
    select seq, clock_timestamp() + wait * interval '1 ms', priority, tenant, id, attempt - given_back, to_timestamp(expires / 1000)
    from held where status = 'pending'
  ), back as (
    insert into carillon.ready (priority, seq, tenant, id, attempt, expires_at)
    select priority, seq, tenant, id, attempt - given_back, to_timestamp(expires / 1000) from held where status = 'queued'
  )
  select token::float8 as token, done::text as done from c`;

const EXTEND = `
  update carillon.claims set lease_until = clock_timestamp() + $3 * interval '1 ms'
  where token = any (array(
    select token from carillon.claims where token = any ($2::bigint[]) and worker = $1 and lease_until > clock_timestamp()
    order by token for update))
  returning token::float8 as token`;

// Whole claims, until they hold as many as asked for.
const SWEEP = `
  with locked as materialized (
    select token, worker, length(done) - bit_count(done) as held from carillon.claims
    where lease_until <= clock_timestamp() order by token limit $2 for update skip locked
  ), expired as materialized (
    select * from (select *, sum(held) over (order by token) - held as before from locked) l where before < $2
  ), c as (
    update carillon.claims set worker = $1, token = nextval('carillon.lease_token'),
      lease_until = clock_timestamp() + $3 * interval '1 ms'
    from expired where claims.token = expired.token returning claims.*, expired.worker as held_by
  )
  select h.seq::float8 as seq, h.tenant, h.id, h.priority, h.attempt, n.request, ${ms("n.accepted_at")} as since,
    ${ms("h.expires_at")} as expires, c.token::float8 as token, ${ms("statement_timestamp()")} as now, c.held_by,
    length(c.done) as size, h.place::integer - 1 as place
  from c cross join lateral unnest(c.seqs, c.priorities, c.tenants, c.ids, c.attempts, c.expiries) with ordinality
    as h(seq, priority, tenant, id, attempt, expires_at, place)
  left join lateral (
    select accepted_at, request from carillon.notifications n where n.tenant = h.tenant and n.id = h.id limit 1
  ) n on true
  where get_bit(c.done, h.place::integer - 1) = 0`;

const ALL_RANKS = PRIORITIES.map((_, rank) => rank);

type Swept = {
  seq: number;
  tenant: number;
  id: string;
  priority: number;
  attempt: number;
  request: NotificationRequest | null;
  since: number;
  expires: number | null;
  token: number;
  now: number;
  held_by: number;
  size: number;
  place: number;
};

/** What a claim holds a place for, and the record does not know. */
type Gone = { attempt: Pick<Attempt, "id" | "lease" | "handle"> };

/** `onGone`: notifications that were in the queue and not in the record. That should never be. */
export function createPostgresQueue(
  db: Queryable,
  monotonic: () => number,
  onGone: (ids: readonly string[]) => void = () => undefined,
): Queue {
  const backlog = createBacklog();

  /** Marks places in claims, and writes what is told of them. Answers with what was marked before, by token. */
  async function mark(masks: Map<number, string[]>, told: readonly Ended[]): Promise<Map<number, string>> {
    const tokens = [...masks.keys()].sort((a, b) => a - b);
    const { rows } = await db.query<{ token: number; done: string }>({
      name: "carillon-settle",
      text: SETTLE,
      values: [
        arrayText(tokens),
        arrayText(tokens.map((token) => masks.get(token)?.join("") ?? "")),
        ...columnsOf(told),
      ],
    });
    return new Map(rows.map((row) => [row.token, row.done]));
  }

  /** What is gone from the record can be neither sent nor told of. Unless its place is marked, its claim never ends. */
  async function letGo(gone: readonly Gone[]): Promise<void> {
    if (gone.length === 0) return;
    onGone(gone.map(({ attempt }) => attempt.id));
    // A claim that was made must not fail for this. What is not marked now comes up again when it is swept.
    await mark(masksOf(gone).masks, []).catch(() => undefined);
  }

  return {
    async claim(worker, count, leaseMs, ranks = ALL_RANKS) {
      // Read before the statement starts: our idea of the lease's end is then never later than the database's.
      const claimedAt = monotonic();
      const head = backlog.head(claimedAt);
      const { rows: chunks } = await db.query<Chunk>({
        name: "carillon-claim",
        text: CLAIM,
        values: [worker, count, leaseMs, ranks, ranks.map((rank) => (rank === head?.rank ? head.seq : 0))],
      });
      const size = chunks.reduce((sum, { seqs }) => sum + seqs.length, 0);
      if (ranks.length === ALL_RANKS.length) {
        const [rank, seq] = [chunks.at(-1)?.ranks.at(-1), chunks[0]?.first];
        const isFull = size === count && rank !== undefined && typeof seq === "number";
        backlog.found(head, claimedAt, isFull ? { rank, seq } : undefined);
      }
      const { token = 0, now: claimedAtMs = 0 } = chunks[0] ?? {};
      const bytes = chunks.reduce((sum, chunk) => sum + (chunk.bytes ?? 0), 0);
      const handle: Claim = { token, size };
      const meanBytes = size > 0 ? bytes / size : 0;
      const lease: Lease = { handle, meanBytes, endsAt: claimedAt + leaseMs, claimedAtMs, claimedAt };
      const attempts: Attempt[] = [];
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
    },
    async settle(batch) {
      const { masks, once } = masksOf(batch);
      const done = await mark(masks, once);
      const isHeld = ({ attempt }: Ended) => done.get(claimOf(attempt.lease).token)?.[placeOf(attempt)] === "0";
      if (once.length === batch.length) return batch.map(isHeld);
      const firsts = new Set(once);
      return batch.map((settled) => firsts.has(settled) && isHeld(settled));
    },
    async extend(worker, leases, leaseMs) {
      const { rows } = await db.query<{ token: number }>({
        name: "carillon-extend",
        text: EXTEND,
        values: [worker, leases.map((lease) => claimOf(lease).token), leaseMs],
      });
      const kept = new Set(rows.map(({ token }) => token));
      return leases.filter((lease) => kept.has(claimOf(lease).token));
    },
    async sweep(worker, count, leaseMs) {
      const claimedAt = monotonic();
      const { rows } = await db.query<Swept>({
        name: "carillon-sweep",
        text: SWEEP,
        values: [worker, count, leaseMs],
      });
      const leases = new Map<number, Lease>();
      for (const { token, size, now } of rows)
        leases.set(token, {
          handle: { token, size } satisfies Claim,
          meanBytes: 0,
          endsAt: claimedAt + leaseMs,
          claimedAtMs: now,
          claimedAt,
        });
      const attempts: (Attempt & { heldBy: number })[] = [];
      const gone: Gone[] = [];
      for (const row of rows) {
        const lease = leases.get(row.token) as Lease;
        if (row.request) attempts.push(sweptAttempt(row, row.request, lease));
        else gone.push({ attempt: { id: row.id, lease, handle: row.place } });
      }
      await letGo(gone);
      return attempts;
    },
    notePostponed: (worker, batch) => notePostponed(db, worker, batch),
    async depth() {
      const { rows } = await db.query<{ depth: number[]; processing: number; scheduled: number }>({
        name: "carillon-depth-all",
        text: `select array(select (select count(*)::int from carillon.ready where priority = lane)
              + (select count(*)::int from carillon.later where priority = lane and due_at <= statement_timestamp())
            from generate_series(0, 3) as lane) as depth,
          (select coalesce(sum(length(done) - bit_count(done)), 0)::int from carillon.claims) as processing,
          (select count(*)::int from carillon.later where due_at > statement_timestamp()) as scheduled`,
      });
      const { depth = [], processing = 0, scheduled = 0 } = rows[0] ?? {};
      const lanes = PRIORITIES.map((lane, rank): [Priority, number] => [lane, depth[rank] ?? 0]);
      return { depth: Object.fromEntries(lanes) as { [lane in Priority]: number }, processing, scheduled };
    },
  } satisfies Queue;
}

function sweptAttempt(row: Swept, request: NotificationRequest, lease: Lease): Attempt & { heldBy: number } {
  return {
    seq: row.seq,
    lease,
    handle: row.place,
    tenant: row.tenant,
    id: row.id,
    rank: row.priority,
    number: row.attempt,
    request,
    sinceMs: row.since,
    expiresAtMs: row.expires ?? undefined,
    heldBy: row.held_by,
  };
}

function attemptIn(chunk: Chunk, n: number, request: NotificationRequest, lease: Lease, place: number): Attempt {
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
