// What Redis does, in Lua: each script is one step that has happened or not.
//
// Keys, all in one slot of a cluster: of each lane the flows in which something waits (`flows:<rank>`, by tenant), and of each flow its entries by
// number (`flow:<rank>:<tenant>:<pool>`), each the number of its handoff, its first bit, and how many there are. What somebody took and has not answered for is in `take:<id>`, by its deadline in `takes`. `marks` are
// the handoffs that were offered. `open` has the run of the server for which that is known to be complete, `look` the look after which it is: a server that was begun anew or another that
// was promoted has another run, and may have forgotten something. `count` is how many entries wait in all.
//
// Whatever Redis remembers, it remembers to one instant: with a mark its entries are there, or were taken; with a take that is not over, its entries are in it.

import { script } from "#wire/redis.ts";

const RUN = `
local base = KEYS[1]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')`;

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Lines of rank, tenant, pool, number and entry. */
const PUT_BACK = `
local function put_back(text)
  for rank, tenant, pool, seq, entry in string.gmatch(text, '(%d+) (%d+) (%d+) (%d+) ([^\\n]+)') do
    local added = redis.call('ZADD', base .. 'flow:' .. rank .. ':' .. tenant .. ':' .. pool, seq, entry)
    redis.call('ZADD', base .. 'flows:' .. rank, tenant, tenant .. ':' .. pool)
    if added > 0 then redis.call('INCRBY', base .. 'count', added) end
  end
end`;

/**
 * ARGV: how many may wait of a flow, and in all; then of each handoff its number, its rank and how many flows; of each flow its tenant, its pool, how many
 * entries, and of each its number and itself. Answers with the numbers of those that are too many.
 */
export const OFFER = script(`
local base = KEYS[1]
local of_flow, of_all = tonumber(ARGV[1]), tonumber(ARGV[2])
local count = tonumber(redis.call('GET', base .. 'count') or '0')
local refused = {}
local at = 3
while ARGV[at] do
  local number, rank, flows = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 3
  local is_known = redis.call('ZSCORE', base .. 'marks', number)
  local added, is_refused = {}, false
  for _ = 1, flows do
    local flow = ARGV[at] .. ':' .. ARGV[at + 1]
    local size = tonumber(ARGV[at + 2])
    added[#added + 1] = { flow, tonumber(ARGV[at]), at + 3, at + 2 + 2 * size }
    count = count + (is_known and 0 or size)
    is_refused = is_refused or count > of_all or redis.call('ZCARD', base .. 'flow:' .. rank .. ':' .. flow) + size > of_flow
    at = at + 3 + 2 * size
  end
  if is_known then
  elseif is_refused then
    refused[#refused + 1] = number
    for _, one in ipairs(added) do count = count - (one[4] - one[3] + 1) / 2 end
  else
    for _, one in ipairs(added) do
      local key = base .. 'flow:' .. rank .. ':' .. one[1]
      for from = one[3], one[4], 2000 do
        local new = redis.call('ZADD', key, unpack(ARGV, from, math.min(from + 1999, one[4])))
        if new > 0 then redis.call('INCRBY', base .. 'count', new) end
      end
      redis.call('ZADD', base .. 'flows:' .. rank, one[2], one[1])
    end
    redis.call('ZADD', base .. 'marks', number, number)
  end
end
return refused`);

/**
 * ARGV: a name for what is taken, for how many milliseconds it is its taker's, how many, and what may be taken, as JSON. Answers with the lines; or that it
 * may have forgotten something.
 *
 * Each round gives every tenant its share by weight of what is still wanted; who has less is out of the next.
 */
export const TAKE = script(`${RUN}${NOW}
if redis.call('GET', base .. 'open') ~= run then return 'FORGOT' end
local wanted = tonumber(ARGV[3])
local ask = cjson.decode(ARGV[4])
local function set_of(list)
  if not list then return nil end
  local set = {}
  for _, one in ipairs(list) do set[one] = true end
  return set
end
local channels, regions, not_tenants = set_of(ask.channels), set_of(ask.regions), set_of(ask.notTenants)
local weights = {}
for _, one in ipairs(ask.weights) do weights[one[1]] = one[2] end
local lines = {}

local function is_open(tenant, pool)
  local channel = pool % 16
  return not not_tenants[tenant] and (not channels or channel == 0 or channels[channel]) and (not regions or pool < 16 or regions[math.floor(pool / 16)])
end

-- Tenants in the order of the walk, each with its flows; no more than can get one.
local function walk(key, found, from, to)
  local offset = 0
  repeat
    local flows = redis.call('ZRANGEBYSCORE', key, from, to, 'LIMIT', offset, 500)
    for _, flow in ipairs(flows) do
      local tenant, pool = string.match(flow, '(%d+):(%d+)')
      tenant, pool = tonumber(tenant), tonumber(pool)
      local last = found[#found]
      if is_open(tenant, pool) then
        if last and last.tenant == tenant then last.flows[#last.flows + 1] = flow
        elseif #found == wanted then return
        else found[#found + 1] = { tenant = tenant, flows = { flow }, weight = weights[tenant] or 1 } end
      end
    end
    offset = offset + 500
  until #flows < 500
end

-- Up to so many off an entry that is in no flow any more: what is more of it goes back. Answers with how many, and how many it had.
local gone = 0
local function take_off(rank, flow, entry, seq, most)
  local tenant, pool = string.match(flow, '(%d+):(%d+)')
  local handoff, place, size = string.match(entry, '(%d+) (%d+) (%d+)')
  size = tonumber(size)
  local got = math.min(size, most)
  if got < size then
    local rest = handoff .. ' ' .. (tonumber(place) + got) .. ' ' .. (size - got)
    redis.call('ZADD', base .. 'flow:' .. rank .. ':' .. flow, string.format('%.0f', tonumber(seq) + got), rest)
  else
    gone = gone + 1
  end
  if got > 0 then lines[#lines + 1] = table.concat({ rank, tenant, pool, seq, handoff, place, got }, ' ') end
  return got, size
end

-- The first of a flow: as many entries at once as those so far let expect.
local function draw(rank, flow, share)
  local got, size = 0, share
  while got < share do
    local popped = redis.call('ZPOPMIN', base .. 'flow:' .. rank .. ':' .. flow, math.max(1, math.floor((share - got) / size)))
    if #popped == 0 then break end
    for n = 1, #popped, 2 do
      local some
      some, size = take_off(rank, flow, popped[n], popped[n + 1], share - got)
      got = got + some
    end
  end
  return got
end

-- The first of a tenant, whatever the flow. Numbers of one entry are not between those of another.
local function pop(rank, one, share)
  local got = 0
  if #one.flows == 1 then
    got = draw(rank, one.flows[1], share)
  else
    local heads = {}
    for _, flow in ipairs(one.flows) do
      local head = redis.call('ZRANGE', base .. 'flow:' .. rank .. ':' .. flow, 0, share - 1, 'WITHSCORES')
      for n = 1, #head, 2 do heads[#heads + 1] = { tonumber(head[n + 1]), flow, head[n], head[n + 1] } end
    end
    table.sort(heads, function(a, b) return a[1] < b[1] end)
    for _, head in ipairs(heads) do
      if got == share then break end
      redis.call('ZREM', base .. 'flow:' .. rank .. ':' .. head[2], head[3])
      got = got + take_off(rank, head[2], head[3], head[4], share - got)
    end
  end
  if got < share then
    for _, flow in ipairs(one.flows) do redis.call('ZREM', base .. 'flows:' .. rank, flow) end
  end
  return got
end

for n, rank in ipairs(ask.ranks) do
  if wanted == 0 then break end
  local first, spent, waiting = ask.firsts[n], ask.spent[n], {}
  local key = base .. 'flows:' .. rank
  if ask.tenants then
    for _, tenant in ipairs(ask.tenants) do if tenant >= first then walk(key, waiting, tenant, tenant) end end
    for _, tenant in ipairs(ask.tenants) do if tenant < first then walk(key, waiting, tenant, tenant) end end
  else
    walk(key, waiting, first, '+inf')
    walk(key, waiting, '-inf', '(' .. first)
  end
  while wanted > 0 and #waiting > 0 do
    local round, still = 0, {}
    for _, one in ipairs(waiting) do round = round + one.weight end
    local rounds = math.max(1, math.floor(wanted / round))
    for _, one in ipairs(waiting) do
      if wanted == 0 then break end
      local share = rounds * one.weight
      if one.tenant == first then
        share = math.max(1, share - math.min(spent, one.weight - 1))
        spent = 0
      end
      share = math.min(wanted, share)
      local got = pop(rank, one, share)
      wanted = wanted - got
      if got == share then still[#still + 1] = one end
    end
    waiting = still
  end
end
if #lines == 0 then return '' end
local taken = table.concat(lines, '\\n')
redis.call('SET', base .. 'take:' .. ARGV[1], taken)
redis.call('ZADD', base .. 'takes', now + ARGV[2], ARGV[1])
redis.call('DECRBY', base .. 'count', gone)
return taken`);

/** ARGV: the name of what was taken, lines that go back, and numbers of handoffs that are over. */
export const DONE = script(`
local base = KEYS[1]${PUT_BACK}
redis.call('DEL', base .. 'take:' .. ARGV[1])
redis.call('ZREM', base .. 'takes', ARGV[1])
put_back(ARGV[2])
for n = 3, #ARGV do redis.call('ZREM', base .. 'marks', ARGV[n]) end
return 'OK'`);

/** What was taken and not answered for in time goes back. ARGV: how many takes at most. Answers with how many that were. */
export const RESTORE = script(`
local base = KEYS[1]${NOW}${PUT_BACK}
local late = redis.call('ZRANGEBYSCORE', base .. 'takes', '-inf', now, 'LIMIT', 0, ARGV[1])
for _, id in ipairs(late) do
  put_back(redis.call('GET', base .. 'take:' .. id) or '')
  redis.call('DEL', base .. 'take:' .. id)
  redis.call('ZREM', base .. 'takes', id)
end
return #late`);

/** ARGV: numbers. Answers with those that were never offered. */
export const MISSING = script(`
local base = KEYS[1]
local missing = {}
for _, number in ipairs(ARGV) do
  if not redis.call('ZSCORE', base .. 'marks', number) then missing[#missing + 1] = number end
end
return missing`);

/**
 * A look at all that is open begins, if it must: ARGV: what it is called. Answers whether it need not, as this run of the server is open.
 * That it was begun is forgotten with the rest.
 */
export const LOOK = script(`${RUN}
if redis.call('GET', base .. 'open') == run then return 1 end
redis.call('SET', base .. 'look', run .. ' ' .. ARGV[1])
return 0`);

/** The look has ended, and all is offered. ARGV: what it is called. Nothing is opened that has forgotten it, or is another run. */
export const OPEN = script(`${RUN}
if redis.call('GET', base .. 'look') ~= run .. ' ' .. ARGV[1] then return 0 end
redis.call('SET', base .. 'open', run)
return 1`);

/** ARGV: the number before which no handoff is open. */
export const TRIM = script(`return redis.call('ZREMRANGEBYSCORE', KEYS[1] .. 'marks', '-inf', '(' .. ARGV[1])`);
