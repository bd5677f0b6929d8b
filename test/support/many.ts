// A great deal of what was accepted, by SQL: as it is after most was sent and some waits. Nobody is told of it, so it is counted like what was there before
// there were tallies.

import type pg from "pg";

export type Many = { tenant: number; ended: number; ready: number; later: number };

const CHUNK = 100_000;
const UNCOUNTED = "update carillon.tallied set tenant = default, id = default";

export async function fillMany(db: pg.Pool | pg.Client, { tenant, ended, ready, later }: Many): Promise<void> {
  const fill = async (count: number, then: string) => {
    for (let from = 0; from < count; from += CHUNK) {
      await db.query(
        `with stored as (
           insert into carillon.notifications (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, request, pool)
           select ${tenant}, overlay(carillon.first_id(x.at)::text placing right(gen_random_uuid()::text, 22) from 15)::uuid, nextval('carillon.acceptance'),
             'console', x.n % 4, 'user ' || x.n % 50000, x.at, x.at, '{"channel":"console","content":{"body":"one of many"}}', carillon.queue_pool('console', 0::smallint)
           from (select n, carillon.now() - n * interval '1 ms' as at from generate_series(${from + 1}, ${Math.min(count, from + CHUNK)}) as n) x
           returning tenant, id, seq, priority, accepted_at, pool
         ) ${then}`,
      );
    }
  };
  await db.query(UNCOUNTED);
  // Told, it would be no faster than if it had been sent.
  await db.query("alter table carillon.events disable trigger events_told");
  try {
    await fill(
      ended,
      `insert into carillon.events (notification_id, tenant, at, type, from_status, to_status, attempt, started_at, provider, outcome, latency_ms)
       select id, tenant, accepted_at + interval '40 ms', 'attempt', 'processing', 'sent', 1, accepted_at, 'console', 'accepted', 1 + seq % 200 from stored`,
    );
  } finally {
    await db.query("alter table carillon.events enable trigger events_told");
  }
  await fill(
    ready,
    "insert into carillon.ready (priority, seq, tenant, id, pool) select priority, seq, tenant, id, pool from stored",
  );
  await fill(
    later,
    "insert into carillon.later (due_at, priority, seq, tenant, id, pool) select carillon.now() + interval '1 day', priority, seq, tenant, id, pool from stored",
  );
}

/** Dead letters, spread over a minute for each sixty thousand: each to a user of its own, with a template and an address. Nobody is told of them. */
export async function fillDead(
  db: pg.Pool | pg.Client,
  { tenant, count }: { tenant: number; count: number },
): Promise<void> {
  await db.query(UNCOUNTED);
  await db.query("alter table carillon.events disable trigger events_told");
  try {
    for (let from = 0; from < count; from += CHUNK) {
      await db.query(
        `with stored as (
           insert into carillon.notifications (tenant, id, seq, channel, priority, user_id, accepted_at, due_at, request)
           select ${tenant}, overlay(carillon.first_id(x.at)::text placing right(gen_random_uuid()::text, 22) from 15)::uuid, nextval('carillon.acceptance'),
             'email', 2, 'user ' || x.n, x.at, x.at, json_build_object('channel', 'email', 'recipient', json_build_object('userId', 'user ' || x.n, 'email',
               'user' || x.n || '@example.com'), 'content', json_build_object('templateId', 'welcome', 'variables', json_build_object('name', 'Ada')))
           from (select n, carillon.now() - n * interval '1 ms' as at from generate_series(${from + 1}, ${Math.min(count, from + CHUNK)}) as n) x
           returning id, accepted_at
         )
         insert into carillon.events (notification_id, tenant, at, type, from_status, to_status, attempt, started_at, provider, outcome, error)
         select id, ${tenant}, accepted_at + interval '40 ms', 'attempt', 'processing', 'failed', 1, accepted_at, 'ses', 'rejected', 'HTTP 503 of ' || id
         from stored`,
      );
    }
  } finally {
    await db.query("alter table carillon.events enable trigger events_told");
  }
}
