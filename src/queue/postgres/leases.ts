// Prolongs claims, and takes over those whose leases have run out.

import type { Lease, Swept } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Queue } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ms } from "./epoch-ms.ts";
import { type Claim, claimOf } from "./handle.ts";
import type { Gone, LetGo } from "./settle.ts";

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
    ${ms("h.expires_at")} as expires, c.token::float8 as token, ${ms("carillon.now()")} as now, c.held_by,
    length(c.done) as size, h.place::integer - 1 as place
  from c cross join lateral unnest(c.seqs, c.priorities, c.tenants, c.ids, c.attempts, c.expiries) with ordinality
    as h(seq, priority, tenant, id, attempt, expires_at, place)
  left join lateral (
    select accepted_at, request from carillon.notifications n where n.tenant = h.tenant and n.id = h.id limit 1
  ) n on true
  where get_bit(c.done, h.place::integer - 1) = 0`;

type Row = {
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

export async function extend(
  db: Queryable,
  worker: number,
  leases: readonly Lease[],
  leaseMs: number,
): Promise<Lease[]> {
  const { rows } = await db.query<{ token: number }>({
    name: "carillon-extend",
    text: EXTEND,
    values: [worker, leases.map((lease) => claimOf(lease).token), leaseMs],
  });
  const kept = new Set(rows.map(({ token }) => token));
  return leases.filter((lease) => kept.has(claimOf(lease).token));
}

export function createSweep(db: Queryable, monotonic: () => number, letGo: LetGo): Queue["sweep"] {
  return async (worker, count, leaseMs) => {
    const claimedAt = monotonic();
    const { rows } = await db.query<Row>({
      name: "carillon-sweep",
      text: SWEEP,
      values: [worker, count, leaseMs],
    });
    const answeredAt = monotonic();
    const leases = new Map<number, Lease>();
    for (const { token, size, now } of rows)
      leases.set(token, {
        handle: { token, size } satisfies Claim,
        meanBytes: 0,
        endsAt: claimedAt + leaseMs,
        claimedAtMs: now,
        claimedAt,
        answeredAt,
      });
    const attempts: Swept[] = [];
    const gone: Gone[] = [];
    for (const row of rows) {
      const lease = leases.get(row.token) as Lease;
      if (row.request) attempts.push(sweptAttempt(row, row.request, lease));
      else gone.push({ attempt: { id: row.id, lease, handle: row.place } });
    }
    await letGo(gone);
    return attempts;
  };
}

function sweptAttempt(row: Row, request: NotificationRequest, lease: Lease): Swept {
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
