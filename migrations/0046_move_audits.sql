-- The audit of a move: what was accepted has ended or waits in one place, engine by engine (docs/engines.md#the-audit).
--
-- Looked at is what was ready, handed over or in hand when the move began, which is listed then, and what was accepted from there on, which the feed
-- tells. Each is looked up in the record and in every place of the queue, in one statement and hence one snapshot: it has ended and is nowhere, or has not and is in
-- one place. That is so at every instant, so what is looked at step by step need not be looked at at once. Nothing is locked.

-- What waited when the move began, a thousand in a row; kept until the next begins, or it has been looked at.
create table carillon.engine_move_lists (
  move    bigint not null,
  place   integer not null,
  engine  text not null,
  tenants integer[] not null,
  ids     uuid[] not null,
  primary key (move, place)
);
alter table carillon.engine_move_lists alter tenants set storage external, alter ids set storage external;

-- `began_in` saw what was listed; `until` is the end of what is looked at. Handoffs up to first_handoff, and those after back_handoff, went to the source.
-- Looked at are the lists up to `place`, then the feed up to (key, seq).
alter table carillon.engine_moves
  add cluster       bigint,
  add began_in      pg_snapshot,
  add first_handoff bigint,
  add back_handoff  bigint,
  add is_listed     boolean not null default false,
  add until         pg_snapshot,
  add place         integer not null default 0,
  add key           bigint not null default 0,
  add seq           bigint not null default 0,
  add is_whole      boolean not null default false,
  add audited_at    timestamptz;

-- Of what an engine was given: `waiting` counts the places where it stands, so what is amiss makes a difference. `amiss` are those that are nowhere, in
-- two places, or have ended and yet wait; `examples` are a few of them.
create table carillon.engine_audits (
  move     bigint not null,
  engine   text not null,
  accepted bigint not null default 0,
  ended    bigint not null default 0,
  waiting  bigint not null default 0,
  amiss    bigint not null default 0,
  examples uuid[] not null default '{}',
  primary key (move, engine)
);

-- The greatest number that a handoff has by now.
create function carillon.queue_last_handoff() returns bigint
language sql volatile as $$
  select case when is_called then last_value * 8 + 7 else 0 end from carillon.handoff
$$;

-- Up to `most` are listed, before the choice is changed: nobody waits for that.
create function carillon.queue_begin_move(from_engine text, to_engine text, by_strategy text, most integer) returns void
language plpgsql as $$
declare
  begun bigint;
  listed bigint;
  last bigint;
begin
  -- One that is still looked at keeps its own.
  delete from carillon.engine_move_lists l where not exists (
    select from carillon.engine_moves m where m.id = l.move and m.until is not null and m.audited_at is null);
  with move as (
    insert into carillon.engine_moves (source, target, strategy, last_seq, waiting, cluster, began_in)
    values (from_engine, to_engine, by_strategy, 0, 0, carillon.read_cluster(), pg_current_snapshot()) returning id
  ), waiting as (
    select w.*, (row_number() over () - 1) / 1000 as part from (
      select 'postgres' as engine, r.tenant, r.id from carillon.ready r where r.priority < 4
      union all
      select h.engine, h.tenant, h.id from carillon.handed h
      union all
      select case when get_bit(c.given, h.place::integer - 1) = 1 then c.engine else 'postgres' end, h.tenant, h.id
      from carillon.claims c cross join lateral unnest(c.tenants, c.ids) with ordinality as h(tenant, id, place)
      where h.tenant > 0 and get_bit(c.done, h.place::integer - 1) = 0
      limit most
    ) w
  ), list as (
    insert into carillon.engine_move_lists (move, place, engine, tenants, ids)
    select m.id, row_number() over (), w.engine, w.tenants, w.ids from move m cross join (
      select engine, array_agg(tenant) as tenants, array_agg(id) as ids from waiting group by part, engine) w
    returning cardinality(ids) as size
  )
  select m.id, (select sum(l.size) from list l) into begun, listed from move m;

  -- Waits for those who are just handing over, and they for this: milliseconds.
  perform carillon.queue_choose(case by_strategy when 'live-forward' then to_engine else 'postgres' end);
  last := carillon.last_seq();
  update carillon.engine_moves m set last_seq = last, waiting = carillon.queue_left(from_engine, last),
    first_handoff = carillon.queue_last_handoff(), is_listed = coalesce(listed, 0) < most
  where m.id = begun;
end
$$;

create function carillon.queue_abort_move(of_move bigint) returns boolean
language plpgsql as $$
declare
  m carillon.engine_moves;
begin
  update carillon.engine_moves x set state = 'aborting' where x.id = of_move and x.state = 'moving' returning * into m;
  if not found then return false; end if;
  perform carillon.queue_choose(m.source);
  update carillon.engine_moves x set back_handoff = carillon.queue_last_handoff() where x.id = of_move;
  return true;
end
$$;

-- Has the move looked at from the beginning up to now.
create function carillon.queue_audit(of_move bigint) returns void
language plpgsql as $$
begin
  delete from carillon.engine_audits a where a.move = of_move;
  update carillon.engine_moves m set until = pg_current_snapshot(), place = 0, key = pg_snapshot_xmin(m.began_in)::text::bigint, seq = 0, audited_at = null,
    -- In another cluster ids of transactions mean nothing, and what the feed has forgotten it cannot tell.
    is_whole = m.is_listed and m.cluster = carillon.read_cluster() and not exists (
      select from carillon.epochs e where e.cluster = m.cluster and e.forgotten_key >= pg_snapshot_xmin(m.began_in)::text::bigint)
  where m.id = of_move and m.began_in is not null;
end
$$;

-- Where these stand. `engine` is the one they were given to; where that is null, it is told by the handoff.
create function carillon.queue_audit_these(m carillon.engine_moves, engines text[], tenants integer[], ids uuid[]) returns void
language plpgsql set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
begin
  with asked as materialized (
    select x.engine, x.id, n.id is not null as is_kept, n.seq, n.handoff,
      coalesce(e.status >= 'sent', false) as has_ended,
      (select count(*) from carillon.ready r where r.priority in (0, 1, 2, 3) and r.tenant = n.tenant and r.pool in (0, n.pool) and r.seq = n.seq)
        + (select count(*) from carillon.later l where l.seq = n.seq) as places
    from unnest(engines, tenants, ids) as x(engine, tenant, id)
    left join lateral (
      select n.tenant, n.id, n.seq, n.handoff, coalesce(n.pool, carillon.queue_pool(n.channel, 0::smallint)) as pool
      from carillon.notifications n where n.tenant = x.tenant and n.id = x.id offset 0
    ) n on true
    left join lateral (
      select e.to_status as status from carillon.events e where e.notification_id = x.id order by e.seq desc, e.at desc limit 1
    ) e on true
  ), held as materialized (
    select h.seq, count(*) as places from carillon.leased h where h.tenant > 0 group by h.seq
  ), handed as materialized (
    select h.seq, count(*) as places from carillon.handed h
    where h.number = any (array(select distinct a.handoff from asked a where a.handoff is not null)) group by h.seq
  ), standing as (
    select coalesce(a.engine, case when a.handoff is null then 'postgres'
        when a.handoff <= m.first_handoff or a.handoff > m.back_handoff then m.source else m.target end) as engine,
      -- What retention has taken had ended.
      a.id, a.has_ended or not a.is_kept as has_ended,
      case when a.is_kept then a.places + coalesce(held.places, 0) + coalesce(handed.places, 0) else 0 end as places
    from asked a left join held on held.seq = a.seq left join handed on handed.seq = a.seq
  )
  insert into carillon.engine_audits as a (move, engine, accepted, ended, waiting, amiss, examples)
  select m.id, s.engine, count(*), count(*) filter (where s.has_ended), sum(s.places), count(*) filter (where s.has_ended::integer + s.places <> 1),
    coalesce((array_agg(s.id) filter (where s.has_ended::integer + s.places <> 1))[1:20], '{}')
  from standing s group by s.engine
  on conflict (move, engine) do update set accepted = a.accepted + excluded.accepted, ended = a.ended + excluded.ended,
    waiting = a.waiting + excluded.waiting, amiss = a.amiss + excluded.amiss, examples = (a.examples || excluded.examples)[1:20];
end
$$;

-- The next of what the feed tells as accepted within the move, up to `most` and the rest of a row: no more than `most` rows are looked at.
--
-- The key of a row is not the id of the transaction that wrote it, but not smaller either. What was accepted in a savepoint of a transaction that was open when the move
-- began may be taken for something listed, and is left out then.
create function carillon.queue_audit_feed(m carillon.engine_moves, most integer, out last_key bigint, out last_seq bigint, out tenants integer[], out ids uuid[])
language sql stable as $$
  with scanned as materialized (
    select f.key, f.seq, f.tenants, f.ids, f.is_within,
      sum(case when f.is_within then f.size else 0 end) over (order by f.key, f.seq rows between unbounded preceding and 1 preceding) as before
    from (
      select f.*, f.types = '{1}' and not pg_visible_in_snapshot(w.writer::text::xid8, m.began_in) and pg_visible_in_snapshot(w.writer::text::xid8, m.until)
        as is_within
      from (
        select f.key, f.seq, f.size, f.types, f.tenants, f.ids, f.xmin::text::bigint as short_writer from carillon.feed f
        where f.cluster = m.cluster and (f.key, f.seq) > (m.key, m.seq) and f.key < pg_snapshot_xmax(m.until)::text::bigint
        order by f.key, f.seq limit most
      ) f cross join lateral (
        select f.key - f.key % 4294967296 + f.short_writer - case when f.short_writer > f.key % 4294967296 then 4294967296 else 0 end as writer
      ) w
    ) f
  ), taken as materialized (
    select * from scanned where coalesce(before, 0) < most
  )
  select (select t.key from taken t order by t.key desc, t.seq desc limit 1), (select t.seq from taken t order by t.key desc, t.seq desc limit 1),
    array_agg(coalesce(x.tenant, t.tenants[1])), array_agg(x.id)
  from taken t cross join lateral unnest(t.tenants, t.ids) as x(tenant, id) where t.is_within
$$;

-- A step of the audit that is to be made, if there is one and nobody else is at it: up to so many looked at, and those that are listed or told with them.
create function carillon.queue_audit_on(most integer, out looked integer, out is_over boolean, out id bigint)
language plpgsql as $$
declare
  m carillon.engine_moves;
  listed record;
  told record;
begin
  looked := 0;
  is_over := false;
  select * into m from carillon.engine_moves x where x.until is not null and x.audited_at is null order by x.id limit 1 for update skip locked;
  if not found then return; end if;
  id := m.id;
  select array_agg(l.engine) as engines, array_agg(x.tenant) as tenants, array_agg(x.id) as ids, max(l.place) as last into listed
  from (select * from carillon.engine_move_lists l where l.move = m.id and l.place > m.place order by l.place limit ceil(most / 1000.0)) l
  cross join lateral unnest(l.tenants, l.ids) as x(tenant, id);
  if listed.last is not null then
    perform carillon.queue_audit_these(m, listed.engines, listed.tenants, listed.ids);
    looked := cardinality(listed.ids);
    update carillon.engine_moves x set place = listed.last where x.id = m.id;
    return;
  end if;
  select * into told from carillon.queue_audit_feed(m, most);
  if told.last_key is not null then
    if told.ids is not null then perform carillon.queue_audit_these(m, array_fill(null::text, array[cardinality(told.ids)]), told.tenants, told.ids); end if;
    looked := coalesce(cardinality(told.ids), 0);
    update carillon.engine_moves x set key = told.last_key, seq = told.last_seq where x.id = m.id;
    return;
  end if;
  is_over := true;
  update carillon.engine_moves x set audited_at = carillon.now() where x.id = m.id;
  perform carillon.write_audit(json_build_object('actorKind', 'process', 'actor', 'keeper', 'action', 'queue.audit', 'objectKind', 'queue', 'after',
    json_build_object('source', m.source, 'target', m.target, 'strategy', m.strategy, 'state', m.state, 'waiting', m.waiting, 'moved', m.moved,
      'whole', m.is_whole, 'balanced', not exists (select from carillon.engine_audits a where a.move = m.id and a.amiss > 0),
      'engines', (select json_agg(json_strip_nulls(json_build_object('engine', a.engine, 'accepted', a.accepted, 'ended', a.ended, 'waiting', a.waiting,
        'amiss', nullif(a.amiss, 0), 'examples', nullif(a.examples, '{}'))) order by a.engine) from carillon.engine_audits a where a.move = m.id))));
end
$$;

-- A step of the move that is under way, if there is one and nobody else is at it. What is over is looked at.
create function carillon.queue_move_on(most integer, out moved bigint, out is_over boolean, out id bigint)
language plpgsql as $$
declare
  m carillon.engine_moves;
  from_engine text;
  to_engine text;
begin
  moved := 0;
  select * into m from carillon.engine_moves x where x.ended_at is null for update skip locked;
  if not found then return; end if;
  id := m.id;
  from_engine := case m.state when 'aborting' then m.target else m.source end;
  to_engine := case m.state when 'aborting' then m.source else m.target end;
  -- What workers drain is not touched; rows of ready are theirs in any case.
  if from_engine <> 'postgres' and (m.state = 'aborting' or m.strategy = 'live-forward') then
    moved := carillon.queue_move_over(from_engine, to_engine, most);
    update carillon.engine_moves x set moved = x.moved + queue_move_on.moved where x.id = m.id;
  end if;
  is_over := case
    when from_engine <> 'postgres' then not exists (select from carillon.handoffs h where h.engine = from_engine)
    -- New work waits there too until it is empty.
    when m.strategy = 'drain-first' and m.state = 'moving' then not exists (select from carillon.ready r where r.priority < 4)
    when m.state = 'aborting' then true
    else carillon.queue_left('postgres', m.last_seq) = 0 end;
  if is_over then
    if m.state = 'moving' and m.strategy = 'drain-first' then perform carillon.queue_choose(m.target); end if;
    update carillon.engine_moves x set state = case m.state when 'aborting' then 'aborted' else 'done' end, ended_at = carillon.now() where x.id = m.id;
    perform carillon.queue_audit(m.id);
  end if;
end
$$;
