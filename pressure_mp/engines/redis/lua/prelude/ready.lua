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

-- The members of `behind`, or of one tube in it.
local function next_behind(tube, start, limit)
  if tube == '' then return redis.call('ZRANGE', behind, start, start + limit - 1) end
  return beginning(behind, tube_of(tube), start, limit)
end

local function number_in_tube(key, tube)
  return redis.call('ZLEXCOUNT', key, '[' .. tube_of(tube), '(' .. tube_of(tube) .. LAST)
end

-- How many are in line; and how many are ready, in line or not.
local function number_in_line(tube)
  return tube == '' and redis.call('ZCARD', ready) or number_in_tube(tubes, tube)
end

local function number_ready(tube)
  return number_in_line(tube) + (tube == '' and redis.call('ZCARD', behind) or number_in_tube(behind, tube))
end
