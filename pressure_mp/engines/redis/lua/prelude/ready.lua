-- Tasks that are ready, or will be; and the clients that wait for them.

-- Note the pauses as they are in `settings` now.
local function note_pauses()
  local texts = {}
  for tube, state in pairs(settings.pauses) do texts[#texts + 1] = state .. tube .. '\0' end
  if #texts > 0 then
    note(set, meta, 'pauses', table.concat(texts))
  else
    note(deleted, meta, 'pauses')
    settings.pauses = nil
  end
end

-- Note a client that waits for a task of a tube; returns the entry.
local function join_line(tube, ticket)
  local entry = tube_of(tube) .. struct.pack('>I8', time[1] * 1000000 + time[2]) .. ticket
  redis.call('ZADD', waiting, 0, entry)
  return entry
end

-- Return the next members of `ready`, or of one tube in it.
local function next_ready(tube, start, limit)
  if tube == '' then return redis.call('ZRANGE', ready, start, start + limit - 1) end
  return beginning(tubes, tube_of(tube), start, limit)
end

-- Return the members of `behind`, or of one tube in it.
local function next_behind(tube, start, limit)
  if tube == '' then return redis.call('ZRANGE', behind, start, start + limit - 1) end
  return beginning(behind, tube_of(tube), start, limit)
end

local function number_in_tube(key, tube)
  return redis.call('ZLEXCOUNT', key, '[' .. tube_of(tube), '(' .. tube_of(tube) .. LAST)
end

-- Count the tasks in line, and all ready tasks.
local function number_in_line(tube)
  return tube == '' and redis.call('ZCARD', ready) or number_in_tube(tubes, tube)
end

local function number_ready(tube)
  return number_in_line(tube) + (tube == '' and redis.call('ZCARD', behind) or number_in_tube(behind, tube))
end
