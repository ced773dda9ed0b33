-- The oldest items are reserved for a reader, which hands them out: they stay queued until it says how many
-- of them it did, and nobody else takes any. It has the consumer role meanwhile; beside the role's holder are
-- the number of its call, how many items that read and their bytes, and how many items others put in front of them.

-- Whether a call of a reader comes too late: it is over, and nobody hears the reply.
local function is_late(readers, reader, call)
  local _, last = read_reader(redis.call('HGET', readers, reader))
  return last >= call
end

-- The reader handed out so many. Returns the server's error, if there is one.
local function hand_out(number, holder, data, bound, not_full, messages, bytes, consumer, client, uploads)
  if number == 0 then return nil end
  local before, read, sizes = unpack(redis.call('HMGET', holder, 'front', 'read', 'bytes'))
  before = tonumber(before or '') or 0
  local signs, length = redis.call('LLEN', not_full), redis.call('LLEN', data)
  if before == 0 and number == tonumber(read or '') and number <= length and tonumber(sizes or '') then
    -- What they weigh is known: to take them out here would copy each of them.
    local total, problem = count(messages, bytes, sizes, number)
    if not total then return problem end
    redis.call('LTRIM', data, 0, -number - 1)
    after_removal(signs, length - number, bound, not_full, consumer, client)
    return nil
  end
  local front = before > 0 and redis.call('RPOP', data, before) or {}
  length = redis.call('LLEN', data)
  local steps, problem = remove_many(data, number, math.huge, length, bound, not_full, messages, bytes, consumer, client, uploads)
  for i = #front, 1, -1 do redis.call('RPUSH', data, front[i]) end
  return not steps and problem or nil
end

-- No call of a reader up to this one does anything when it comes now; so many of its items count as handed
-- out. A full server refuses no write behind the first one.
local function note_call(readers, reader, call, number)
  redis.call('HDEL', readers, reader)
  redis.call('HSET', readers, reader, write_reader(0, call, number, number, 0))
end
