// The harness's own record of the queue, kept inside the database under test.
//
// The product deletes a lease when it settles it, so the tables at the end do not tell who held what when. Triggers
// note every change of the queue tables in the transaction that makes it; with commit timestamps on, the checker
// knows for every claim what could be seen at that moment. The product's own statements are left as they are.

import pg from "pg";
import type { Change, EventRow, NotificationRow, TallyRow, TenantRow, WaitingRow, Walk, WorkerRow } from "./history.ts";

const INSTALL = `
  create schema chaos;
  create table chaos.journal (
    n bigint generated always as identity primary key,
    xid xid not null default pg_current_xact_id()::xid,
    began timestamptz not null default statement_timestamp(),
    at timestamptz not null default clock_timestamp(),
    op text not null, place text not null,
    seq bigint not null, id uuid not null, tenant integer not null, priority smallint not null, attempt smallint not null,
    token bigint, worker integer, until timestamptz, old_token bigint, old_until timestamptz, due timestamptz
  );

  create function chaos.note() returns trigger language plpgsql as $$
  begin
    if tg_op = 'INSERT' then
      insert into chaos.journal (op, place, seq, id, tenant, priority, attempt, due)
      select 'insert', tg_table_name, seq, id, tenant, priority, attempt, (to_json(g) ->> 'due_at')::timestamptz from gained g;
    else
      insert into chaos.journal (op, place, seq, id, tenant, priority, attempt)
      select 'delete', tg_table_name, seq, id, tenant, priority, attempt from lost;
    end if;
    return null;
  end
  $$;

  -- A claim is one row; what it holds is noted one by one, and ends when its bit is set or the claim goes.
  create function chaos.held(c carillon.claims)
  returns table (seq bigint, id uuid, tenant integer, priority smallint, attempt smallint)
  language sql as $$
    select h.seq, h.id, h.tenant, h.priority, h.attempt
    from unnest(c.seqs, c.ids, c.tenants, c.priorities, c.attempts) with ordinality as h(seq, id, tenant, priority, attempt, n)
    where get_bit(c.done, h.n::integer - 1) = 0
  $$;
  create function chaos.note_claim() returns trigger language plpgsql as $$
  begin
    if tg_op = 'INSERT' then
      insert into chaos.journal (op, place, seq, id, tenant, priority, attempt, token, worker, until)
      select 'insert', 'leased', h.seq, h.id, h.tenant, h.priority, h.attempt, new.token, new.worker, new.lease_until
      from chaos.held(new) h;
      return null;
    end if;
    insert into chaos.journal (op, place, seq, id, tenant, priority, attempt, token, worker, until)
    select 'delete', 'leased', h.seq, h.id, h.tenant, h.priority, h.attempt, old.token, old.worker, old.lease_until
    from chaos.held(old) h
    where tg_op = 'DELETE' or h.seq not in (select n.seq from chaos.held(new) n);
    if tg_op = 'UPDATE' and (new.token, new.lease_until) is distinct from (old.token, old.lease_until) then
      insert into chaos.journal (op, place, seq, id, tenant, priority, attempt, token, worker, until, old_token, old_until)
      select 'update', 'leased', h.seq, h.id, h.tenant, h.priority, h.attempt, new.token, new.worker, new.lease_until, old.token,
        old.lease_until
      from chaos.held(new) h;
    end if;
    return null;
  end
  $$;
  -- A handoff is one row, too; what is of it ends when its bit is set or the row goes.
  create function chaos.given(h carillon.handoffs) returns table (seq bigint, id uuid, tenant integer)
  language sql as $$
    select x.seq, x.id, x.tenant from carillon.queue_open_of(h) x
  $$;
  create function chaos.note_handoff() returns trigger language plpgsql as $$
  begin
    if tg_op = 'INSERT' then
      insert into chaos.journal (op, place, seq, id, tenant, priority, attempt)
      select 'insert', 'handed', g.seq, g.id, g.tenant, new.priority, 0 from chaos.given(new) g;
      return null;
    end if;
    insert into chaos.journal (op, place, seq, id, tenant, priority, attempt)
    select 'delete', 'handed', g.seq, g.id, g.tenant, old.priority, 0 from chaos.given(old) g
    where tg_op = 'DELETE' or g.seq not in (select n.seq from chaos.given(new) n);
    return null;
  end
  $$;
  create trigger noted after insert or update or delete on carillon.handoffs
    for each row execute function chaos.note_handoff();
  do $$
  declare place text;
  begin
    foreach place in array array['ready', 'later'] loop
      execute format('create trigger gained after insert on carillon.%I referencing new table as gained
        for each statement execute function chaos.note()', place);
      execute format('create trigger lost after delete on carillon.%I referencing old table as lost
        for each statement execute function chaos.note()', place);
    end loop;
  end
  $$;
  create trigger noted after insert or update or delete on carillon.claims
    for each row execute function chaos.note_claim();`;

const QUERY_MS = 60_000;
/** All that a run left behind takes as long as it takes. */
const READ_ALL_MS = 600_000;

export async function withClient<Value>(
  url: string,
  act: (db: pg.Client) => Promise<Value>,
  queryMs = QUERY_MS,
): Promise<Value> {
  const db = new pg.Client({ connectionString: url, connectionTimeoutMillis: 30_000, query_timeout: queryMs });
  db.on("error", () => undefined);
  try {
    await db.connect();
    return await act(db);
  } finally {
    await db.end().catch(() => undefined);
  }
}

/** Commits have times, and transactions can be prepared. Takes effect at the server's next start. */
export const prepareServer = (url: string): Promise<unknown> =>
  withClient(url, async (db) => {
    await db.query("alter system set track_commit_timestamp = on");
    await db.query("alter system set max_prepared_transactions = 8");
  });

export const installJournal = (url: string): Promise<unknown> => withClient(url, (db) => db.query(INSTALL));

export const setWeight = (url: string, tenant: string, weight: number): Promise<unknown> =>
  withClient(url, (db) => db.query("update carillon.tenants set weight = $2 where name = $1", [tenant, weight]));

export const chooseEngine = (url: string, engine: string): Promise<unknown> =>
  withClient(url, (db) => db.query("select carillon.queue_choose($1)", [engine]));

/** What is under way: ready, handed over, leased and scheduled together. Of callbacks the tenant is below zero. */
export const countWaiting = (url: string, what: "notifications" | "callbacks"): Promise<number> =>
  withClient(url, async (db) => {
    const are = what === "callbacks" ? "tenant < 0" : "tenant > 0";
    const { rows } = await db.query<{ n: number }>(`select (select count(*) from carillon.ready where ${are})::int
      + (select count(*) from carillon.leased where ${are})::int + (select count(*) from carillon.later where ${are})::int
      + (select count(*) from carillon.handed where ${are})::int as n`);
    return rows[0]?.n ?? 0;
  });

/** Whether all that happened was counted. */
export const isTallied = (url: string): Promise<boolean> =>
  withClient(url, async (db) => {
    const { rows } = await db.query("select from carillon.untallied limit 1");
    return rows.length === 0;
  });

/** What a process holds. */
export async function heldBy(url: string, pid: number): Promise<number[]> {
  return withClient(url, async (db) => {
    const { rows } = await db.query<{ seq: number }>(
      `select l.seq::float8 as seq from carillon.leased l join carillon.workers w on w.id = l.worker where ${PID} = $1`,
      [pid],
    );
    return rows.map(({ seq }) => seq);
  });
}

/** A process other than `pid` that holds one of these. */
export async function findHolder(url: string, seqs: readonly number[], pid: number): Promise<number | undefined> {
  return withClient(url, async (db) => {
    const { rows } = await db.query<{ pid: number }>(
      `select ${PID} as pid from carillon.leased l join carillon.workers w on w.id = l.worker
       where l.seq = any ($1) and ${PID} <> $2 limit 1`,
      [seqs, pid],
    );
    return rows[0]?.pid;
  });
}

/** A worker's name is <host>-<pid>-<uuid>. */
const PID = "substring(name from '-([0-9]+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')::int";
const ms = (column: string, name = column) => `(extract(epoch from ${column}) * 1000)::float8 as "${name}"`;

export type Tables = Walk & { tenants: TenantRow[]; workers: WorkerRow[]; tallies: TallyRow[]; callbacks: Walk };

export const readTables = (url: string): Promise<Tables> =>
  withClient(
    url,
    async (db) => {
      const all = async <Row extends pg.QueryResultRow>(sql: string) => (await db.query<Row>(sql)).rows;
      // What long transactions have made of it is read for every notification, and a table in use is not cut shorter.
      await db.query("vacuum carillon.claims");
      await db.query("begin isolation level repeatable read read only");
      const tenants = await all<TenantRow>("select id, name, weight from carillon.tenants order by id");
      const notifications = await all<NotificationRow>(`select id, seq::float8 as seq, tenant, priority,
      ${ms("accepted_at", "acceptedAt")}, ${ms("due_at", "dueAt")}, ${ms("expires_at", "expiresAt")}, request, status
      from carillon.records order by seq`);
      const events =
        await all<EventRow>(`select h.notification_id as id, h.seq::float8 as number, ${ms("h.at", "at")}, e.xmin::text::float8 as xid, h.type,
      h.from_status as "from", h.to_status as "to", h.attempt, h.token::float8 as token, h.worker,
      ${ms("h.started_at", "startedAt")}, h.outcome, h.cost, h.error as reason
      from carillon.history h left join carillon.events e on e.notification_id = h.notification_id and e.seq = h.seq
      order by h.seq, h.at`);
      const waiting = await all<WaitingRow>(`select 'ready' as place, seq::float8 as seq, id from carillon.ready
      union all select 'leased', seq::float8, id from carillon.leased
      union all select 'later', seq::float8, id from carillon.later
      union all select 'handed', seq::float8, id from carillon.handed`);
      const workers = await all<WorkerRow>(`select id, ${PID} as pid from carillon.workers order by id`);
      const journal = await all<Change>(`select n::float8 as n, xid::text::float8 as xid, op, place,
      ${ms("began", "beganAt")}, ${ms("at")}, ${ms("pg_xact_commit_timestamp(xid)", "committedAt")},
      seq::float8 as seq, id, tenant, priority, attempt, token::float8 as token, worker, ${ms("until")},
      old_token::float8 as "oldToken", ${ms("old_until", "oldUntil")}, ${ms("due")} from chaos.journal order by n`);
      const tallies =
        await all<TallyRow>(`select tenant, channel, event, was, becomes, outcome, sum(count)::int as count, sum(cost)::float8 as cost from carillon.tallies
      where grain = 'ever' group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6`);
      const isCallback = new Set(notifications.filter(({ tenant }) => tenant < 0).map(({ id }) => id));
      const walkOf = (holds: (id: string) => boolean): Walk => ({
        notifications: notifications.filter(({ id }) => holds(id)),
        events: events.filter(({ id }) => holds(id)),
        waiting: waiting.filter(({ id }) => holds(id)),
        journal: journal.filter(({ id }) => holds(id)),
      });
      const callbacks = walkOf((id) => isCallback.has(id));
      return { tenants, workers, tallies, callbacks, ...walkOf((id) => !isCallback.has(id)) };
    },
    READ_ALL_MS,
  );
