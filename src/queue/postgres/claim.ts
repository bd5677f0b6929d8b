// Takes what is ready out of its lanes, as one row of claims.

import { setTimeout } from "node:timers/promises";
import type { Claimed, Lease } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import type { Queue, Takes } from "#queue/queue.ts";
import { bytesOf } from "#record/request-bytes.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";
import type { Claim } from "./handle.ts";
import { createBacklog, type Head, type Heads } from "./head.ts";
import { createRounds, type Rounds, type Turn } from "./rounds.ts";
import type { Gone, LetGo } from "./settle.ts";

// queue_turns() says how many of which flow, in the order of lanes. Within a flow what waited for its time goes by that, the rest as it was
// accepted. Rows of ready are locked here and never updated, so ctid finds them; those of later may have been, by whoever writes SQL.
// Where there are several flows the tenants' turns are put together, each as long as the tenant's weight. Every column that a row carries
// through here shows in the drain: of its turn it has the number only.
// What was picked is read in one order everywhere: places in the claim are counted from that. The limit of one keeps the planner
// from anything but a probe per row. Columns as JSON cost the driver half of what rows do; a hundred at a time, so
// that large requests are not put together into one enormous answer. Of what was picked only the first are taken that come to
// MOST_BYTES between them, or else one tenant's large requests would be more than the process can hold; the others stay where they
// are.
const CHUNK = 100;
const MOST_BYTES = 16 * 1024 * 1024;
const ATTEMPT = "seq, id, (attempt + 1)::smallint as attempt, expires_at";
const CLAIM = `
  with turns as materialized (
    select * from carillon.queue_turns($2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) with ordinality as t(lane, is_due, tenant, pool,
      head, last_due, last_seq, takes, weight, used, is_wrapped, is_mixed, turn)
  ), picked as materialized (
    select r.*, t.lane as priority, t.tenant, t.turn from turns t
    cross join lateral (
      select * from (
        select due_at, ctid as place, ${ATTEMPT} from carillon.later
        where t.is_due and priority = t.lane and tenant = t.tenant and pool = t.pool and due_at <= least(carillon.now(), t.last_due)
        order by due_at, seq limit t.takes for update skip locked
      ) due
      union all
      select * from (
        select null::timestamptz, ctid, ${ATTEMPT} from carillon.ready
        where not t.is_due and priority = t.lane and tenant = t.tenant and pool = t.pool and seq >= t.head
          and seq <= coalesce(t.last_seq, 9223372036854775807) order by seq limit t.takes for update skip locked
      ) ready
    ) r limit $2
  ), ordered as (
    select * from picked where not exists (select from turns where is_mixed)
    union all
    select * from (
      select * from picked where exists (select from turns where is_mixed)
      order by priority, (row_number() over (partition by priority, tenant order by due_at, seq) + (array(select used from turns))[turn] - 1)
        / (array(select weight from turns))[turn], (array(select is_wrapped from turns))[turn], tenant, due_at, seq
    ) mixed
  ), taken as materialized (
    select * from (
      select p.*, n.accepted_at, n.request, n.size,
        sum(n.size) over (rows between unbounded preceding and 1 preceding) as before
      from ordered p left join lateral (
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
  select c.token::float8 as token, ${ms("carillon.now()")} as now, chunk.*, planned.flows,
    (select json_agg(seq) from taken where due_at is not null) as dues
  from (
    select json_agg(json_build_object('rank', lane, 'tenant', tenant, 'pool', pool, 'weight', weight, 'used', used, 'isDue', is_due)) as flows
    from turns
  ) planned
  left join c on true left join generate_series(0, c.size - 1, ${CHUNK}) as start on true
  left join lateral (
    select json_agg(p.seq) as seqs, json_agg(p.tenant) as tenants, json_agg(p.id) as ids, json_agg(p.priority) as ranks,
      json_agg(p.attempt) as numbers, json_agg(p.request) as requests, sum(p.size)::float8 as bytes,
      json_agg((${ms("coalesce(p.due_at, p.accepted_at)")})::bigint) as sinces,
      json_agg((${ms("p.expires_at")})::bigint) as expiries
    from (select * from taken offset start limit ${CHUNK}) p
  ) chunk on true
  where planned.flows is not null`;

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
  /** What was to be claimed, of all chunks. */
  flows: Flow[];
  /** Of all chunks, the seqs of what waited for its time. */
  dues: number[] | null;
};

/** There was something to claim, and others had just locked all of it. */
type Missed = Pick<Chunk, "flows"> & { token: null };

/** `used` is what the tenant had had of its turn before. */
type Flow = { rank: number; tenant: number; pool: number; weight: number; used: number; isDue: boolean };

/** Then it looks again, after so long each time, with those whose turn is next: what others claim is soon committed. */
const AGAIN_MS = [0, 2, 4, 8, 16];

const ALL: Takes = { ranks: PRIORITIES.map((_, rank) => rank) };

export function createClaim(db: Queryable, monotonic: () => number, letGo: LetGo): Queue["claim"] {
  const backlog = createBacklog();
  const rounds = createRounds();

  async function look(worker: number, count: number, leaseMs: number, takes: Takes) {
    // Read before the statement starts: our idea of the lease's end is then never later than the database's.
    const claimedAt = monotonic();
    const known = backlog.heads(claimedAt);
    const { rows } = await db.query<Chunk | Missed>({
      name: "carillon-claim",
      text: CLAIM,
      values: [worker, count, leaseMs, ...turnsOf(takes, rounds), ...headsOf(known)],
    });
    const chunks = rows.filter((row): row is Chunk => row.token !== null);
    const size = chunks.reduce((sum, { seqs }) => sum + seqs.length, 0);
    const ending = endOf(chunks);
    if (ending) rounds.ended(ending);
    else for (const { rank, tenant } of rows[0]?.flows ?? []) rounds.ended({ rank, tenant, spent: 0 });
    if (!known || takes.ranks.includes(known.rank))
      backlog.found(known, claimedAt, size === count ? ending : undefined, takes.notTenants);
    return { chunks, size, claimedAt, hasMissed: size === 0 && rows.length > 0 };
  }

  return async (worker, count, leaseMs, takes = ALL) => {
    let found = await look(worker, count, leaseMs, takes);
    for (const waitMs of AGAIN_MS) {
      if (!found.hasMissed) break;
      if (waitMs > 0) await setTimeout(waitMs);
      found = await look(worker, count, leaseMs, takes);
    }
    const { chunks, size, claimedAt } = found;
    const { token = 0, now: claimedAtMs = 0 } = chunks[0] ?? {};
    const bytes = chunks.reduce((sum, chunk) => sum + (chunk.bytes ?? 0), 0);
    const handle: Claim = { token, size };
    const meanBytes = size > 0 ? bytes / size : 0;
    const endsAt = claimedAt + leaseMs;
    const lease: Lease = { handle, meanBytes, endsAt, claimedAtMs, claimedAt, answeredAt: monotonic() };
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

/** The lane in which a claim ended: from where to look into its flows, and whose turn it was. */
function endOf(chunks: readonly Chunk[]): (Heads & Turn) | undefined {
  const last = chunks.at(-1);
  const [rank, tenant] = [last?.ranks.at(-1), last?.tenants.at(-1)];
  if (rank === undefined || tenant === undefined) return undefined;
  const flows = last?.flows.filter((flow) => flow.rank === rank) ?? [];
  const firsts = firstsOf(chunks, rank, new Set(last?.dues), flows.length > 1);
  const { weight = 1, used = 0 } = flows.find((flow) => flow.tenant === tenant) ?? {};
  const heads = flows.flatMap(({ tenant, pool, isDue }) => {
    const seq = firsts.get(tenant)?.seq;
    return isDue || seq === undefined ? [] : { tenant, pool, seq };
  });
  return { rank, tenant, spent: ((firsts.get(tenant)?.taken ?? 0) + used) % weight, heads };
}

/** Of what a claim took of a tenant in a lane: the first that had not waited for its time, and how many there are in all. */
type First = { seq: number | undefined; taken: number };

/** By tenant. Of a single flow the first to come is the first there is, and how many matters to nobody. */
function firstsOf(chunks: readonly Chunk[], rank: number, dues: ReadonlySet<number>, isMixed: boolean) {
  const firsts = new Map<number, First>();
  for (const { ranks, tenants, seqs } of chunks) {
    for (const [n, seq] of seqs.entries()) {
      if (ranks[n] !== rank) continue;
      const tenant = tenants[n] as number;
      let first = firsts.get(tenant);
      if (!first) {
        first = { seq: undefined, taken: 0 };
        firsts.set(tenant, first);
      }
      first.taken++;
      if (!dues.has(seq) && seq < (first.seq ?? Number.POSITIVE_INFINITY)) first.seq = seq;
      if (!isMixed) return firsts;
    }
  }
  return firsts;
}

function turnsOf({ ranks, channels, tenants, notTenants = [], regions }: Takes, rounds: Rounds): unknown[] {
  const turns = ranks.map((rank) => rounds.next(rank));
  const firsts = turns.map(({ tenant }) => tenant);
  return [ranks, firsts, turns.map(({ spent }) => spent), channels, tenants, notTenants, regions];
}

function headsOf({ rank, heads }: Partial<Heads> = {}): unknown[] {
  const column = (name: keyof Head) => heads?.map((head) => head[name]) ?? [];
  return [rank, column("tenant"), column("pool"), column("seq")];
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
