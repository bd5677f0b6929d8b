-- Guards: limits that hold everywhere, and what workers tell each other about providers that are down.

-- One row per key that is limited. Instants are milliseconds of this database's clock.
create table carillon.limits (
  key           text primary key,
  -- GCRA's theoretical arrival times, by period: second, minute, hour, day.
  tats          float8[] not null default '{0,0,0,0}',
  -- Nobody before this: the provider has said so.
  blocked_until float8 not null default 0,
  -- The limits that the line was made for. Under others it is over: whoever raises a limit does not want to wait for it.
  shape         text,
  -- Who was refused waits in a line, one per priority: the last instant that was given out, the newest that waits, and the
  -- arrival times as they will be when all of them are through (four for each priority).
  line_at       float8[] not null default '{0,0,0,0}',
  line_seq      float8[] not null default '{0,0,0,0}',
  line_tats     float8[] not null default '{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}',
  -- From then on the row says nothing that its absence would not.
  idle_at       float8 not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- Takes from several keys at once, each with several limits: all or nothing. One after the other, as given:
--   [{ "q": seq, "r": rank, "p": patience in ms, "k": [{ "k": key, "n": how many, "l": [[period, interval in ms, burst], …] }, …] }, …]
-- Answers for each: granted or not, whether all that was asked for, the milliseconds to wait, and the key that made it wait.
--
-- Whoever needs to wait no longer than its patience is granted a moment to come. Whoever needs to wait longer gets nothing but an
-- instant of its own: the one at which it will be allowed if everybody before it in the line comes as told. Newcomers do not
-- overtake a line of their own or a higher priority; seq tells who waits already.
create function carillon.take_limits(asks jsonb)
returns table (is_granted boolean, is_full boolean, wait_ms float8, wait_key text)
language plpgsql as $$
declare
  now_ms float8;
  ask jsonb;
  item jsonb;
  one jsonb;
  every float8;
  burst float8;
  held carillon.limits;
  keys constant text[] := array(
    select distinct x ->> 'k' from jsonb_array_elements(asks) a, jsonb_array_elements(a -> 'k') x order by 1);
  rank integer;
  seq float8;
  n float8;
  p integer;
  allowed_at float8;  -- when all keys allow it, by what was taken
  step float8;        -- the interval of the limit that says so
  own float8;         -- when this key does
  must_line boolean;
  is_member boolean;
  has_line boolean;
  tries_one boolean;
  ahead float8[];
  locked integer;
  -- An arrival time is never further away than a whole burst and the longest patience, unless the limit was raised since.
  spare constant float8 := 1000;
begin
  -- Always in the same order, so that no two callers wait for each other. One that was idle may just have been forgotten.
  loop
    insert into carillon.limits (key) select k from unnest(keys) k
      where not exists (select from carillon.limits l where l.key = k) order by k on conflict do nothing;
    perform from carillon.limits l where l.key = any (keys) order by l.key for update;
    get diagnostics locked = row_count;
    exit when locked = cardinality(keys);
  end loop;

  for ask in select a from jsonb_array_elements(asks) with ordinality as x(a, o) order by o loop
    -- Only now: the clock must not be older than what others took before us.
    now_ms := date_part('epoch', clock_timestamp()) * 1000;
    rank := (ask ->> 'r')::integer;
    seq := (ask ->> 'q')::float8;
    tries_one := false;
    loop
      allowed_at := now_ms;
      step := 0;
      wait_key := null;
      must_line := false;
      is_member := false;
      for x in 0..jsonb_array_length(ask -> 'k') - 1 loop
        item := ask -> 'k' -> x;
        select * into held from carillon.limits l where l.key = item ->> 'k';
        if held.shape is distinct from item ->> 'l' then held.line_at := '{0,0,0,0}'; end if;
        n := case when tries_one then 1 else (item ->> 'n')::float8 end;
        if held.blocked_until > allowed_at then
          allowed_at := held.blocked_until;
          step := 0;
          wait_key := held.key;
        end if;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          own := least(held.tats[p], now_ms + burst * every + spare)
            + (n - burst) * every;
          if own > allowed_at then
            allowed_at := own;
            step := every;
            wait_key := held.key;
          end if;
        end loop;
        has_line := held.line_at[rank + 1] > now_ms;
        if has_line and seq <= held.line_seq[rank + 1] then
          is_member := true;
        elsif has_line or rank > 0 and held.line_at[1] > now_ms or rank > 1 and held.line_at[2] > now_ms
          or rank > 2 and held.line_at[3] > now_ms then
          must_line := true;
        end if;
      end loop;
      exit when tries_one or (allowed_at - now_ms <= (ask ->> 'p')::float8 and not must_line);
      tries_one := true;
    end loop;

    if not must_line and allowed_at - now_ms <= (ask ->> 'p')::float8 then
      for x in 0..jsonb_array_length(ask -> 'k') - 1 loop
        item := ask -> 'k' -> x;
        select * into held from carillon.limits l where l.key = item ->> 'k';
        if held.shape is distinct from item ->> 'l' then held.line_at := '{0,0,0,0}'; end if;
        n := case when tries_one then 1 else (item ->> 'n')::float8 end;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          held.tats[p] := greatest(allowed_at,
            least(held.tats[p], now_ms + burst * every + spare)) + n * every;
          held.idle_at := greatest(held.idle_at, held.tats[p]);
        end loop;
        update carillon.limits l set tats = held.tats, idle_at = held.idle_at, line_at = held.line_at, shape = item ->> 'l'
        where l.key = held.key;
      end loop;
      is_granted := true;
    elsif is_member and not must_line and allowed_at - now_ms < 0.9 * step then
      -- The line is a little late. Who lost its turn to another waits a whole step, and goes to the end instead.
      is_granted := false;
    else
      for x in 0..jsonb_array_length(ask -> 'k') - 1 loop
        item := ask -> 'k' -> x;
        select * into held from carillon.limits l where l.key = item ->> 'k';
        if held.shape is distinct from item ->> 'l' then held.line_at := '{0,0,0,0}'; end if;
        own := greatest(now_ms, held.blocked_until);
        ahead := held.tats;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          ahead[p] := least(ahead[p], now_ms + burst * every + spare);
        end loop;
        for r in 0..rank loop
          if held.line_at[r + 1] > now_ms then
            for i in 1..4 loop
              ahead[i] := greatest(ahead[i], held.line_tats[r * 4 + i]);
            end loop;
          end if;
        end loop;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          own := greatest(own, ahead[p] + (1 - burst) * every);
        end loop;
        -- A key that has room is no reason to wait, and gets no line.
        continue when own <= now_ms;
        for y in 0..jsonb_array_length(item -> 'l') - 1 loop
          one := item -> 'l' -> y;
          p := (one ->> 0)::integer;
          every := (one ->> 1)::float8;
          burst := (one ->> 2)::float8;
          ahead[p] := greatest(ahead[p], own) + every;
        end loop;
        for i in 1..4 loop
          held.line_tats[rank * 4 + i] := ahead[i];
        end loop;
        held.line_seq[rank + 1] := case when held.line_at[rank + 1] > now_ms then greatest(held.line_seq[rank + 1], seq) else seq end;
        held.line_at[rank + 1] := own;
        update carillon.limits l set line_at = held.line_at, line_seq = held.line_seq, line_tats = held.line_tats,
          shape = item ->> 'l', idle_at = greatest(l.idle_at, own) where l.key = held.key;
        if own >= allowed_at then
          allowed_at := own;
          wait_key := held.key;
        end if;
      end loop;
      is_granted := false;
    end if;
    is_full := is_granted and not tries_one;
    wait_ms := greatest(0, allowed_at - now_ms);
    return next;
  end loop;
end
$$;

-- What workers tell each other about providers. A hint: each goes by what it sees itself.
create table carillon.breakers (
  account    text primary key,
  state      text not null check (state in ('closed', 'half-open', 'open')),
  -- An open one lets nobody through before this.
  until      timestamptz not null,
  openings   integer not null,
  reason     text,
  -- The provider asked for a pause.
  paused_until timestamptz,
  worker     integer not null,
  changed_at timestamptz not null default clock_timestamp()
);
