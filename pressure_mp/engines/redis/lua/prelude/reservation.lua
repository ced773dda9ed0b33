-- The oldest items are reserved for a reader, which hands them out: they stay queued until the reader says how many of
-- them it handed out, and no other client takes any. The reader has the consumer role meanwhile; beside the role's
-- holder are the number of its call, how many items it had handed out in all by then, and how many items others put in
-- front.

-- Whether a call of a reader comes too late: it is over, and no client reads the reply.
local function is_late(readers, reader, call)
  local _, last = read_reader(redis.call('HGET', readers, reader))
  return last >= call
end

-- Return the bytes of the next `number` items that a reader hands out, if these are all items of some of its calls:
-- then the items need not be read again. The notes about later items stay.
local function batches_of(number, holder)
  local batches = redis.call('HGET', holder, 'batches') or ''
  local size, from = 0, 1
  while number > 0 do
    local _, last, items, their_size = string.find(batches, '^(%d+) (%d+) ', from)
    if not last then break end
    number, size, from = number - tonumber(items), size + tonumber(their_size), last + 1
  end
  redis.call('HSET', holder, 'batches', number == 0 and string.sub(batches, from) or '')
  return number == 0 and size or nil
end

-- Note that a call that keeps so many items read so many more, of `size` bytes. Nothing is noted unless all is known.
local function note_batch(holder, kept, number, size)
  local batches = redis.call('HGET', holder, 'batches') or ''
  for items in string.gmatch(batches, '(%d+) %d+ ') do kept = kept - tonumber(items) end
  if number > 0 then batches = string.format('%s%d %d ', batches, number, size) end
  redis.call('HSET', holder, 'batches', kept == 0 and batches or '')
end

-- Note that the reader handed out so many items. Returns the server's error, if there is one.
local function hand_out(number, holder, data, bound, not_full, messages, bytes, consumer, client, uploads)
  if number == 0 then return nil end
  local before = tonumber(redis.call('HGET', holder, 'front') or '') or 0
  local size = batches_of(number, holder)
  if size and before == 0 then
    local left, signs = redis.call('LLEN', data) - number, redis.call('LLEN', not_full)
    local total, problem = count(messages, bytes, size, number)
    if not total then return problem end
    redis.call('LTRIM', data, 0, -number - 1)
    update_sign(left, signs, bound, not_full, consumer, client)
    return nil
  end
  local front = before > 0 and redis.call('RPOP', data, before) or {}
  local length = redis.call('LLEN', data)
  local steps, problem = remove_many(data, number, math.huge, length, bound, not_full, messages, bytes, consumer, client, uploads)
  for i = #front, 1, -1 do redis.call('RPUSH', data, front[i]) end
  return not steps and problem or nil
end

-- Note that all calls of a reader up to this one do nothing when they come now, and that so many items in all count as
-- handed out. A full server refuses no write after the first one.
local function note_call(readers, reader, call, number)
  redis.call('HDEL', readers, reader)
  redis.call('HSET', readers, reader, write_reader(0, call, number, 0))
end
