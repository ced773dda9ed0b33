-- The clients in line for a role, by ticket: scripts cannot see the server's own line. A call that has to wait writes
-- its entry, and so does each repetition of it. Entries show which clients are in line, and which may have been granted
-- a role and have not used it. An entry has the role, the time since which it waits (in microseconds, since that is the
-- line's order), the time of the waiter's last call, how long to keep the entry (in milliseconds), and the client.

-- Milliseconds for which an entry is kept after its waiter's last call; a lease, if that is longer.
local KEPT = 10000
-- The most entries that one call reads: all of them, unless the line is very long.
local LOOK = 64

local function read_entry(entry)
  local role, since, seen, kept, client = string.match(entry, '^(%a+) (%d+) (%d+) (%d+) (.*)$')
  return role, tonumber(since), tonumber(seen), tonumber(kept), client
end

-- Take the caller out of the line. Returns its entry if it calls again and keeps its place.
local function leave_line(waiting, turn, ticket)
  if turn == 'first' then return nil end
  local entry = turn == 'again' and redis.call('HGET', waiting, ticket)
  redis.call('HDEL', waiting, ticket)
  return entry
end

-- Return the clients in line, by role: each may have been granted it. Drops old entries.
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

-- Count the clients that wait for a role, in line or with it: `held` is its holder. A client that was granted it is
-- still in line.
local function count_waiting(role, waiting, held, now)
  local number, line = (held ~= '' and held ~= 'granted') and 1 or 0, redis.call('HLEN', waiting)
  if line == 0 then return number end
  return number + math.ceil(#candidates(waiting, now)[role] * math.max(line, LOOK) / LOOK)
end

-- Whether a caller lets the clients go first that wait for a role which one of this package has. `left` is how many
-- items, or how much space, its call would leave. Callers are served in the order in which they came. But a holder of
-- this package only waits: a caller that cannot wait may pass it, and so may any caller that leaves something for each
-- client that waits. Otherwise a client that was granted the role and is on its way would keep all other clients
-- waiting, which would then join the line, so that each item takes a turn.
local function yields(role, state, mode, left, waiting, held)
  if state ~= 'ours' or mode == 'now' or left > redis.call('HLEN', waiting) then return false end
  return left < 0 or left < count_waiting(role, waiting, held, milliseconds())
end

-- Reply to a caller that is not served: in mode wait it joins the line. The reply says whether the holder of the role
-- is a client of this package or foreign.
local function busy(name, state, waiting, entry, caller)
  if caller.mode == 'wait' then
    local time = redis.call('TIME')
    local came = time[1] * 1000000 + time[2]
    local now = math.floor(came / 1000)
    -- A waiter drops old entries when it calls again; joining the line is to be quick, as long as the line is not
    -- longer than one call reads.
    if caller.turn == 'first' and redis.call('HLEN', waiting) >= LOOK then candidates(waiting, now) end
    local role, since = read_entry(entry or '')
    if role ~= name then since = came end
    local kept = math.max(tonumber(caller.lease), KEPT)
    redis.call('HSET', waiting, caller.ticket,
      string.format('%s %d %d %d %s', name, since, now, kept, caller.client))
  end
  return {'busy', name, state}
end
