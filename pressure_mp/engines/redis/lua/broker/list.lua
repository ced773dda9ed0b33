-- list: return the summaries of some queues. Changes nothing.
-- args: own way...
--   own  1: the queues may be of any discipline but the protocol's; 0: they are the protocol's
--   way  the transitions of tasks that are counted
-- replies: done queues
-- The keys are the keys of each queue in turn, see `LISTED` in scripts.py. A key of a type that no client writes counts
-- as missing. The reply for a queue whose name only looks like another discipline's is ''.
local parts = ARGV[1] == '1' and 16 or 12
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Return a reply, nil for an error.
local function told(reply)
  if type(reply) == 'table' and reply.err then return nil end
  return reply
end

-- Count the clients that wait to put, and to get: in line, or with the role.
local function waiting(line, p_holder, c_holder)
  local found = {producer = 0, consumer = 0}
  local entries = told(redis.pcall('HGETALL', line)) or {}
  for i = 2, #entries, 2 do
    local role, seen, kept = string.match(entries[i], '^(%a+) %d+ (%d+) (%d+) ')
    if found[role] and tonumber(seen) + tonumber(kept) >= now then found[role] = found[role] + 1 end
  end
  for role, holder in pairs({producer = p_holder, consumer = c_holder}) do
    local ticket = told(redis.pcall('HGET', holder, 'ticket'))
    if ticket and ticket ~= 'granted' and not string.find(ticket, ':reader-', 1, true) then found[role] = found[role] + 1 end
  end
  return found.producer, found.consumer
end

-- Count the items that were fetched ahead, and are not known to be handed out.
local function ahead(readers)
  local number, records = 0, told(redis.pcall('HGETALL', readers)) or {}
  for i = 2, #records, 2 do
    number = number + (string.match(records[i], '^%d+ %d+ %d+ (%d+) [01]') or 0)
  end
  return number
end

-- nil for a queue of the protocol that is gone.
local function items(at, discipline)
  local bound, data, put, got, closed, in_flight, readers, rejected, line, p_holder, c_holder, meta =
    unpack(KEYS, at + 1, at + 12)
  local counts = redis.call('MGET', bound, put, got)
  if not counts[1] and parts == 12 then return nil end
  -- One of the two is an error: data is a list or a sorted set.
  local length = told(redis.pcall('LLEN', data)) or told(redis.pcall('ZCARD', data)) or 0
  local bound_of_own = string.match(counts[1] or '', '^%l+ (%d+)$')
  local reply = {discipline, bound_of_own or counts[1] or '0', length, counts[2] or '0', counts[3] or '0'}
  -- Most queues have none of these most of the time: then the reply has nothing for them.
  local returned = told(redis.pcall('HGET', meta, 'returned'))
  if returned or redis.call('EXISTS', closed, in_flight, readers, rejected, line, p_holder, c_holder) > 0 then
    reply[6] = redis.call('EXISTS', closed)
    reply[7] = (told(redis.pcall('HLEN', in_flight)) or 0) + ahead(readers)
    reply[8] = told(redis.pcall('LLEN', rejected)) or 0
    reply[9], reply[10] = waiting(line, p_holder, c_holder)
    reply[11] = returned or '0'
  end
  return reply
end

-- Count the workers of the processes whose leases last.
local function living(workers, presence)
  local number, said = 0, told(redis.pcall('HGETALL', workers)) or {}
  for i = 1, #said, 2 do
    local till = tonumber(told(redis.pcall('HGET', presence, said[i])) or '')
    if till and till >= now then number = number + 1 + select(2, string.gsub(said[i + 1], '%z', '')) end
  end
  return number
end

-- The age of the next task follows from the number of its arrival, which is a time in microseconds.
local function tasks(at)
  local line, meta, counts, ready, workers, presence = KEYS[at + 9], unpack(KEYS, at + 12, at + 16)
  local ways = {}
  for i, number in ipairs(told(redis.pcall('HMGET', counts, unpack(ARGV, 2))) or {}) do
    if number then
      ways[#ways + 1] = ARGV[1 + i]
      ways[#ways + 1] = number
    end
  end
  local first, age = (told(redis.pcall('ZRANGE', ready, 0, 0)) or {})[1], ''
  if first and #first > 16 then age = string.format('%d', now - math.floor(struct.unpack('>I8', first, 9) / 1000)) end
  -- The entries without a tube are of clients that wait for space.
  local putting = told(redis.pcall('ZLEXCOUNT', line, '[\0', '(\1')) or 0
  local settings = told(redis.pcall('HGET', meta, 'settings'))
  return {
    'tasks', told(redis.pcall('HEXISTS', meta, 'closed')) or 0, (told(redis.pcall('ZCARD', line)) or 0) - putting, age,
    ways, told(redis.pcall('HGET', meta, 'pauses')) or '', living(workers, presence),
    settings and #settings == 56 and struct.unpack('>I8', settings, 49) or 0, putting,
  }
end

-- nil if there is none.
local function other(at)
  local bound, meta = KEYS[at + 1], KEYS[at + 12]
  if redis.call('EXISTS', bound) == 0 then return nil end
  local discipline = told(redis.pcall('HGET', meta, 'discipline'))
  return discipline and (discipline == 'tasks' and tasks(at) or items(at, discipline))
end

local found = {}
for at = 0, #KEYS - 1, parts do
  found[#found + 1] = (parts == 12 and items(at, 'fifo') or parts > 12 and other(at)) or ''
end
return {'done', found}
