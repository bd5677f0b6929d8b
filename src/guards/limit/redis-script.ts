// The limits' arithmetic in Lua, the same as carillon.take_limits() (migration 0010), which says what its numbers mean.
//
// All that ask at the same time are reckoned in one call, one after the other: each key is read once and written once. Redis's clock
// decides, which stands still while a script runs. A key goes by itself once nothing is left to say of it.

/** State of a key: t arrival times, b blocked until, s the limits its line was made for, a, q and l its lines, i idle from then on. */
const STATE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local states = {}
local changed = {}
local function load(key)
  local held = states[key]
  if held then return held end
  local kept = redis.call('GET', key)
  if kept then
    local t1, t2, t3, t4, b, i, s, a, q, l = cmsgpack.unpack(kept)
    held = { t = {t1, t2, t3, t4}, b = b, i = i, s = s, a = a or {0,0,0,0}, q = q, l = l }
  else
    held = { t = {0,0,0,0}, b = 0, i = 0, a = {0,0,0,0} }
  end
  states[key] = held
  return held
end
-- Few have a line, and what is not kept need not be read.
local function keep()
  for key, held in pairs(changed) do
    local t, a = held.t, held.a
    local has_line = a[1] > now or a[2] > now or a[3] > now or a[4] > now
    local kept = has_line and cmsgpack.pack(t[1], t[2], t[3], t[4], held.b, held.i, held.s, a, held.q, held.l)
      or cmsgpack.pack(t[1], t[2], t[3], t[4], held.b, held.i)
    redis.call('SET', key, kept, 'PX', math.ceil(math.max(0, held.i - now)) + 1000)
  end
end`;

/** All keys allow it now: what is answered most. */
export const AT_ONCE = "1 1 0";

/**
 * ARGV, each an array in JSON: the limits that are asked for, each of them with its text and for each rate the period, the interval and the burst; and of each ask its
 * seq, rank, patience and number of keys, and for each key its place in KEYS, how many, and the place of its limits. Few long arguments are read
 * faster than many short ones. Answers with a line for each ask: granted, full, the wait and the place of the key.
 */
export const TAKE = `${STATE}
local limits, numbers = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local at = 1
local SPARE = 1000
local max, min = math.max, math.min

local function read_ask()
  local ask = { seq = numbers[at], rank = numbers[at + 1], patience = numbers[at + 2] }
  local count = numbers[at + 3]
  at = at + 4
  for x = 1, count do
    local of = limits[numbers[at + 2]]
    local held = load(KEYS[numbers[at]])
    if held.s and held.s ~= of.text then held.a, held.q, held.l, held.s = {0,0,0,0}, nil, nil, nil end
    ask[x] = { key = numbers[at], n = numbers[at + 1], held = held, limits = of.rates, shape = of.text }
    at = at + 3
  end
  return ask
end

local function arrival(held, limit)
  return min(held.t[limit.p], now + limit.burst * limit.every + SPARE)
end

-- When all keys allow it, by what was taken; and whether somebody else is to go first.
local function look(ask, tries_one)
  local found = { at = now, step = 0, key = 0, must_line = false, is_member = false }
  for _, item in ipairs(ask) do
    local held = item.held
    local n = tries_one and 1 or item.n
    if held.b > found.at then found.at, found.step, found.key = held.b, 0, item.key end
    for _, limit in ipairs(item.limits) do
      local own = arrival(held, limit) + (n - limit.burst) * limit.every
      if own > found.at then found.at, found.step, found.key = own, limit.every, item.key end
    end
    local has_line = held.a[ask.rank + 1] > now
    if has_line and ask.seq <= held.q[ask.rank + 1] then
      found.is_member = true
    else
      local before = has_line
      for rank = 1, ask.rank do before = before or held.a[rank] > now end
      if before then found.must_line = true end
    end
  end
  return found
end

local function grant(ask, found, tries_one)
  for _, item in ipairs(ask) do
    local held = item.held
    local n = tries_one and 1 or item.n
    for _, limit in ipairs(item.limits) do
      held.t[limit.p] = max(found.at, arrival(held, limit)) + n * limit.every
      held.i = max(held.i, held.t[limit.p])
    end
    changed[KEYS[item.key]] = held
  end
end

-- An instant of its own, after all those who wait already.
local function line_up(ask, found)
  local first = ask.rank * 4
  for _, item in ipairs(ask) do
    local held = item.held
    local own = max(now, held.b)
    local ahead = { held.t[1], held.t[2], held.t[3], held.t[4] }
    for _, limit in ipairs(item.limits) do ahead[limit.p] = arrival(held, limit) end
    for rank = 0, ask.rank do
      if held.a[rank + 1] > now then
        for p = 1, 4 do ahead[p] = max(ahead[p], held.l[rank * 4 + p]) end
      end
    end
    for _, limit in ipairs(item.limits) do own = max(own, ahead[limit.p] + (1 - limit.burst) * limit.every) end
    -- A key that has room is no reason to wait, and gets no line.
    if own > now then
      held.q = held.q or {0,0,0,0}
      held.l = held.l or {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}
      for _, limit in ipairs(item.limits) do ahead[limit.p] = max(ahead[limit.p], own) + limit.every end
      for p = 1, 4 do held.l[first + p] = ahead[p] end
      held.q[ask.rank + 1] = held.a[ask.rank + 1] > now and max(held.q[ask.rank + 1], ask.seq) or ask.seq
      held.a[ask.rank + 1] = own
      held.s = item.shape
      held.i = max(held.i, own)
      changed[KEYS[item.key]] = held
      if own >= found.at then found.at, found.key = own, item.key end
    end
  end
end

local answers = {}
while numbers[at] do
  local ask = read_ask()
  local tries_one = false
  local found = look(ask, false)
  if found.must_line or found.at - now > ask.patience then
    tries_one = true
    found = look(ask, true)
  end
  local is_granted = not found.must_line and found.at - now <= ask.patience
  if is_granted then grant(ask, found, tries_one)
  -- The line is a little late. Who lost its turn to another waits a whole step, and goes to the end instead.
  elseif not (found.is_member and not found.must_line and found.at - now < 0.9 * found.step) then line_up(ask, found) end
  answers[#answers + 1] = is_granted and not tries_one and found.at <= now and '${AT_ONCE}'
    or string.format('%d %d %.3f %d', is_granted and 1 or 0, is_granted and not tries_one and 1 or 0, max(0, found.at - now), found.key)
end
keep()
return table.concat(answers, '\\n')`;

/** ARGV: for how long nothing more. */
export const DELAY = `${STATE}
local held = load(KEYS[1])
held.b = math.max(held.b, now + tonumber(ARGV[1]))
held.i = math.max(held.i, held.b)
changed[KEYS[1]] = held
keep()
return 'OK'`;

/** Answers with the time, and for each key what is known of it, or nothing. */
export const LOOK = `${STATE}
local answers = {}
for n, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 then
    local held = load(key)
    local numbers = {}
    for _, list in ipairs({ held.t, { held.b }, held.a }) do
      for _, number in ipairs(list) do numbers[#numbers + 1] = string.format('%.3f', number) end
    end
    answers[n] = table.concat(numbers, ' ')
  else answers[n] = '' end
end
return string.format('%.3f', now) .. '\\n' .. table.concat(answers, '\\n')`;
