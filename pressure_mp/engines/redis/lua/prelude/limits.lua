-- The limits of tubes, with '' for the whole queue. `meta` has the log of each: moments, and how many tasks were
-- delivered at each, the oldest first; see `Limit` in pressure_mp/engines/requests/limits.py. It also has for each tube,
-- if the queue has limits, when a client that waits for a task of this tube will call again by itself.
local limits = {DELIVERED = '>I8I8'}

-- Read the log of a limit, from a field of a key.
function limits.load(limit, key, field)
  limit.log, limit.used = {}, 0
  local text, at, moment, number = redis.call('HGET', key, field) or '', 1, 0, nil
  while at < #text do
    moment, number, at = struct.unpack(limits.DELIVERED, text, at)
    if moment >= now - limit.per then
      limit.log[#limit.log + 1] = {math.min(moment, now), number}
      limit.used = limit.used + number
    end
  end
  -- The clock was set back: these deliveries count from now on.
  if moment > now then redis.call('HSET', key, field, limits.pack(limit.log)) end
end

-- Return the limit of a tube, with its log; nil if it has none.
function limits.of(tube)
  local limit = settings.limits and settings.limits[tube]
  if limit and not limit.log then limits.load(limit, meta, 'log ' .. tube) end
  return limit
end

-- Add deliveries to the log of a limit, which is returned packed.
function limits.add(limit, number)
  local log, step = limit.log, limit.number > 256 and math.max(math.floor(limit.per / 256), 1) or 1
  local last = log[#log]
  if last and math.floor(last[1] / step) == math.floor(now / step) then
    last[1], last[2] = now, last[2] + number
  else
    log[#log + 1] = {now, number}
  end
  limit.used = limit.used + number
  return limits.pack(log)
end

function limits.pack(log)
  local texts = {}
  for i, entry in ipairs(log) do texts[i] = struct.pack(limits.DELIVERED, entry[1], entry[2]) end
  return table.concat(texts)
end

-- Return how many tasks of a tube may be delivered now.
function limits.admits(tube)
  local limit = limits.of(tube)
  return limit and math.max(limit.number - limit.used, 0) or math.huge
end

-- Return the last millisecond in which no task of a tube may be delivered; nil if one may be now.
function limits.used_until(tube)
  return limits.until_of(limits.of(tube))
end

function limits.until_of(limit)
  if not limit or limit.used < limit.number then return nil end
  local left = limit.used
  for _, entry in ipairs(limit.log) do
    left = left - entry[2]
    if left < limit.number then return entry[1] + limit.per end
  end
end

-- Whether no task of a tube may be delivered now, and a client that waits will call again when one may be.
function limits.is_watched(tube)
  local own = limits.used_until(tube) or 0
  local until_then = math.max(limits.used_until('') or 0, own)
  if until_then == 0 then return false, false end
  local function is_before(moment)
    moment = tonumber(moment or '0')
    return moment >= now and moment <= until_then
  end
  local of_any, of_tube = unpack(redis.call('HMGET', meta, 'watched ', 'watched ' .. tube))
  return is_before(of_any), is_before(of_tube)
end

-- Note that a client waits no longer for a task of a tube. Returns whether another one may have left it to this one to
-- call when a limit admits a task.
function limits.end_watch(tube)
  if not (settings.limits or settings.key_limits) then return false end
  redis.call('HDEL', meta, 'watched ', 'watched ' .. tube)
  return true
end
