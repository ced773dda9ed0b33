-- The oldest items are reserved for a reader, which hands them out: they stay queued until it says how many
-- of them it did, and nobody else takes any. It has the consumer role meanwhile; beside the role's holder are
-- the number of its call, how many items it had handed out in all by then, and how many others put in front.

-- Whether a call of a reader comes too late: it is over, and nobody hears the reply.
local function is_late(readers, reader, call)
  local _, last = read_reader(redis.call('HGET', readers, reader))
  return last >= call
end

-- The reader handed out so many. Returns the server's error, if there is one.
local function hand_out(number, holder, data, bound, not_full, messages, bytes, consumer, client, uploads)
  if number == 0 then return nil end
  local before = tonumber(redis.call('HGET', holder, 'front') or '') or 0
  local front = before > 0 and redis.call('RPOP', data, before) or {}
  local length = redis.call('LLEN', data)
  local steps, problem = remove_many(data, number, math.huge, length, bound, not_full, messages, bytes, consumer, client, uploads)
  for i = #front, 1, -1 do redis.call('RPUSH', data, front[i]) end
  return not steps and problem or nil
end

-- No call of a reader up to this one does anything when it comes now; so many of all its items count as
-- handed out. A full server refuses no write behind the first one.
local function note_call(readers, reader, call, number)
  redis.call('HDEL', readers, reader)
  redis.call('HSET', readers, reader, write_reader(0, call, number, number, 0))
end
