-- Items whose content is beside the queue, in chunks: the queued item is a manifest. It begins with four bytes with
-- which no other item begins, a token (a name of 16 hexadecimal digits, and the number of chunks in 8 digits), and the
-- size of the content in 16 digits. `chunks` has the chunks by name and number. `uploads` has for each token the time
-- in milliseconds until which its chunks are kept: '+inf' while the manifest is queued, and no entry while it is in
-- flight or set aside.

-- The most chunks that one call removes: each takes about 20 microseconds.
local FEW = 32

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A client that writes a content sends it again if it is gone when the manifest is put. A client that reads it would
-- lose it: so it is kept for longer then.
local function keep_content(uploads, token, lease, reading)
  local time = math.max(lease * (reading and 12 or 1), 3000)
  redis.call('ZADD', uploads, string.format('%.0f', clock() + time), token)
end

-- Return the bytes of an item; and its token, if its content exists.
local function size_of(uploads, item)
  if string.byte(item) ~= 250 or string.sub(item, 2, 4) ~= 'mp1' then return #item end
  local token, size = string.sub(item, 5, 28), tonumber(string.sub(item, 29, 44), 16)
  if not size or not redis.call('ZSCORE', uploads, token) then return #item end
  return size, token
end

-- Remove up to `limit` of a token's chunks; returns how many, and whether none is left.
local function drop_chunks(chunks, token, limit)
  local name, last = string.sub(token, 1, 16), tonumber(string.sub(token, 17, 24), 16) or 0
  local removed = 0
  while last > 0 and removed < limit do
    local fields, first = {}, math.max(last - FEW, 0)
    for number = first, last - 1 do fields[#fields + 1] = string.format('%s:%d', name, number) end
    removed, last = removed + redis.call('HDEL', chunks, unpack(fields)), first
  end
  return removed, last == 0
end

-- Remove some of the chunks that are no longer kept; returns how many tokens have more of these. When nothing is
-- queued, another implementation took the manifests, or deleted the queue.
local function sweep_contents(uploads, chunks, is_empty)
  local now, removed = clock(), 0
  redis.call('HLEN', chunks)
  if is_empty then
    for _, token in ipairs(redis.call('ZRANGE', uploads, '+inf', '+inf', 'BYSCORE', 'LIMIT', 0, 1000)) do
      redis.call('ZADD', uploads, 0, token)
    end
  end
  for _, token in ipairs(redis.call('ZRANGE', uploads, '-inf', now, 'BYSCORE', 'LIMIT', 0, FEW)) do
    if removed < FEW then
      local number, all = drop_chunks(chunks, token, FEW - removed)
      removed = removed + number
      if all then redis.call('ZREM', uploads, token) end
    end
  end
  return redis.call('ZCOUNT', uploads, '-inf', now)
end
