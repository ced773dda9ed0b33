-- Tasks that are ready, or will be; and who waits for them.

-- Note one who waits for a task of a tube; returns the note.
local function stand(tube, ticket)
  local entry = tube_of(tube) .. struct.pack('>I8', time[1] * 1000000 + time[2]) .. ticket
  redis.call('ZADD', waiting, 0, entry)
  return entry
end

-- The members of `ready`, or of one tube in it, that are next.
local function next_ready(tube, start, limit)
  if tube == '' then return redis.call('ZRANGE', ready, start, start + limit - 1) end
  return beginning(tubes, tube_of(tube), start, limit)
end

-- How many there are.
local function number_ready(tube)
  if tube == '' then return redis.call('ZCARD', ready) end
  return redis.call('ZLEXCOUNT', tubes, '[' .. tube_of(tube), '(' .. tube_of(tube) .. LAST)
end
