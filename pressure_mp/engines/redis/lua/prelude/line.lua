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

-- Take the caller out of the line. Answers the entry of one who looks again and keeps its place.
local function leave_line(waiting, turn, ticket)
  if turn == 'first' or turn == 'woken' then return nil end
  local entry = turn == 'again' and redis.call('HGET', waiting, ticket)
  redis.call('HDEL', waiting, ticket)
  return entry
end

-- Those who may have been granted the role; entries that are out of date are dropped.
local function candidates(name, waiting, now)
  local found, named = redis.call('HRANDFIELD', waiting, LOOK, 'WITHVALUES'), {}
  for i = 1, #found, 2 do
    local role, _, seen, kept = read_entry(found[i + 1])
    if not role or seen + kept < now then
      redis.call('HDEL', waiting, found[i])
    elseif role == name then
      named[#named + 1] = found[i]
    end
  end
  return named
end

-- The caller is not served: in mode wait it stands in line. The reply names who keeps the role
-- from it, if that is known: the holder, or those who may have been granted it; then in how many
-- milliseconds to look again, '' when that does not matter.
local function busy(name, held, ends, waiting, entry, who)
  local time = redis.call('TIME')
  local came = time[1] * 1000000 + time[2]
  local now = math.floor(came / 1000)
  local named = (held ~= '' and held ~= 'promised') and {held} or {}
  if who.mode == 'wait' then
    -- A look costs little, since each waiter looks about once a second; to come into the line
    -- is to be quick, as long as it is not longer than one look sees.
    if who.turn ~= 'first' or redis.call('HLEN', waiting) >= LOOK then
      local found = candidates(name, waiting, now)
      if held == 'promised' then named = found end
    end
    local role, since = read_entry(entry or '')
    if role ~= name then since = came end
    local kept = math.max(tonumber(who.lease), KEPT)
    redis.call('HSET', waiting, who.ticket,
      string.format('%s %d %d %d %s', name, since, now, kept, who.client))
  end
  return {'busy', name, named, ends and math.max(ends - now + 1, 1) or ''}
end
