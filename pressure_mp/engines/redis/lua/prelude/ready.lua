-- Tasks that are ready, or will be; and the clients that wait for them.

-- Note the pauses and limits as they are in `settings` now.
local function note_pauses()
  local texts = {}
  for tube, state in pairs(settings.pauses) do texts[#texts + 1] = state .. tube .. '\0' end
  for state, of in pairs({L = settings.limits or {}, K = settings.key_limits or {}}) do
    for tube, limit in pairs(of) do
      texts[#texts + 1] = string.format('%s%d %d ', state, limit.number, limit.per) .. tube .. '\0'
    end
  end
  if #texts > 0 then
    note(set, meta, 'pauses', table.concat(texts))
  else
    note(deleted, meta, 'pauses')
    settings.pauses = nil
  end
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
      note(set, meta, 'log ' .. name, limits.add(limit, number))
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
  if not (settings.limits or settings.key_limits) or soon == '' then return soon end
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

-- Set or remove the limit of each key of a tube: no number is none.
function limits.set_each(tube, number, per)
  settings.key_limits = settings.key_limits or {}
  settings.key_limits[tube] = number > 0 and {number = number, per = per} or nil
  for _, name in ipairs(redis.call('HKEYS', groups)) do
    if string.sub(name, 1, 2) == '\0\0' then
      limits.open_key(name)
      local of = string.match(name, '^%z%z(%Z*)')
      if not (settings.key_limits[of] or settings.key_limits['']) then
        note(deleted, groups, name)
        note(removed, times, 'g' .. string.sub(name, 3))
        note(removed, due, name)
      end
    end
  end
end
