-- Who stands in line for a role, by ticket: the server's own line is hidden from scripts. An entry
-- is written only by a call that has to wait, and at each of its looks. It tells who the line is,
-- and who may have been granted a role that nobody came for. It has the role, since when (in
-- microseconds, since that is the line's order), when the waiter last looked, how long to keep the
-- entry (in milliseconds), and the client.

-- Milliseconds that an entry is kept after its waiter last looked; a lease, if that is longer.
local KEPT = 10000
-- How many entries are looked at in one call: all of them, as long as the line is not very long.
local LOOK = 64

local function read_entry(entry)
  local role, since, seen, kept, client = string.match(entry, '^(%a+) (%d+) (%d+) (%d+) (.*)$')
  return role, tonumber(since), tonumber(seen), tonumber(kept), client
end

-- Take the caller out of the line. Returns the entry of one who looks again and keeps its place.
local function leave_line(waiting, turn, ticket)
  if turn == 'first' then return nil end
  local entry = turn == 'again' and redis.call('HGET', waiting, ticket)
  redis.call('HDEL', waiting, ticket)
  return entry
end

-- Those who stand in line, by role: each may have been granted it. Entries that are out of date are dropped.
local function candidates(waiting, now)
  local found, named = redis.call('HRANDFIELD', waiting, LOOK, 'WITHVALUES'), {producer = {}, consumer = {}}
  for i = 1, #found, 2 do
    local role, _, seen, kept = read_entry(found[i + 1])
    local line = named[role]
    if not line or seen + kept < now then
      redis.call('HDEL', waiting, found[i])
    else
      line[#line + 1] = found[i]
    end
  end
  return named
end

-- How many wait for a role, in line, or with it: `held` names who has it. Who was promised it is still in line.
local function count_waiting(role, waiting, held, now)
  local number, line = (held ~= '' and held ~= 'promised') and 1 or 0, redis.call('HLEN', waiting)
  if line == 0 then return number end
  return number + math.ceil(#candidates(waiting, now)[role] * math.max(line, LOOK) / LOOK)
end

-- The caller is not served: in mode wait it stands in line. The reply says with whom the role is, ours or foreign.
local function busy(name, state, waiting, entry, who)
  if who.mode == 'wait' then
    local time = redis.call('TIME')
    local came = time[1] * 1000000 + time[2]
    local now = math.floor(came / 1000)
    -- Whoever waits drops old entries when it looks; to come into the line is to be quick, as long as
    -- it is not longer than one look sees.
    if who.turn == 'first' and redis.call('HLEN', waiting) >= LOOK then candidates(waiting, now) end
    local role, since = read_entry(entry or '')
    if role ~= name then since = came end
    local kept = math.max(tonumber(who.lease), KEPT)
    redis.call('HSET', waiting, who.ticket,
      string.format('%s %d %d %d %s', name, since, now, kept, who.client))
  end
  return {'busy', name, state}
end
