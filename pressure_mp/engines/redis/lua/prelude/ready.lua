-- Tasks that are ready, or will be; and the clients that wait for them.

-- Note the pauses and limits as they are in `settings` now.
local function note_pauses()
  local texts = {}
  for tube, state in pairs(settings.pauses) do texts[#texts + 1] = state .. tube .. '\0' end
  for tube, limit in pairs(settings.limits or {}) do
    texts[#texts + 1] = string.format('L%d %d ', limit.number, limit.per) .. tube .. '\0'
  end
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

-- Note that tasks of a tube are delivered now.
function limits.deliver(tube, number)
  for _, name in ipairs(tube == '' and {''} or {'', tube}) do
    local limit = limits.of(name)
    if limit then
      local log, step = limit.log, limit.number > 256 and math.max(math.floor(limit.per / 256), 1) or 1
      local last = log[#log]
      if last and math.floor(last[1] / step) == math.floor(now / step) then
        last[1], last[2] = now, last[2] + number
      else
        log[#log + 1] = {now, number}
      end
      limit.used = limit.used + number
      note(set, meta, 'log ' .. name, limits.pack(log))
    end
  end
end

-- Return in how many milliseconds the next task becomes ready, or a limit admits one; '' when neither happens by itself.
function limits.next_due()
  local soon = next_due()
  if not settings.limits then return soon end
  local first, least = soon == '' and math.huge or soon, 0
  for tube in pairs(settings.limits) do
    local used_until = limits.used_until(tube)
    if used_until and tube == '' then least = used_until - now + 1 end
    if used_until and not is_paused(tube) and number_ready(tube) > 0 then first = math.min(first, used_until - now + 1) end
  end
  return first < math.huge and math.max(first, least) or ''
end

-- Have a client wait for a task of a tube: return in how many milliseconds it calls again. A client that waits `anew`
-- leaves it to another one to call when a limit admits a task: that one wakes the next.
function limits.wait(tube, anew)
  local soon = limits.next_due()
  if not settings.limits or soon == '' then return soon end
  local watched = tonumber(redis.call('HGET', meta, 'watched ' .. tube) or '0')
  if anew and watched >= now and watched < now + soon then return next_due() end
  note(set, meta, 'watched ' .. tube, string.format('%d', now + soon - 1))
  return soon
end

function limits.remove(tube)
  settings.limits[tube] = nil
  note(deleted, meta, 'log ' .. tube)
  note(deleted, meta, 'watched ' .. tube)
end
