-- keys: items ready serial
-- item: ready
-- By priority, then by arrival: a sorted set with equal scores, whose order is the order of its members' bytes. A
-- member is the priority, in an encoding that sorts as priorities do, and no encoding is the beginning of another, and
-- the number of the arrival in eight bytes. That number is the item's field in `items`. `ready` has one element exactly
-- while an item is queued.

local function size(data)
  return redis.call('ZCARD', data)
end

-- Whether two priorities have no order: they first differ in the kind of a value.
local function unordered(one, other)
  for i = 1, math.min(#one, #other) do
    local mine, its = string.byte(one, i), string.byte(other, i)
    if mine ~= its then return mine > 0 and mine < 16 and its > 0 and its < 16 end
  end
  return false
end

-- A function that adds an item; or nil and a queued priority that this one cannot be compared with. It can be compared
-- with all if it can be compared with its neighbours.
local function placing(data, length, priority)
  redis.call('HLEN', items)
  redis.call('LLEN', ready)
  local last = redis.call('GET', serial) or '0'
  if #last > 15 or not string.match(last, '^%d+$') then error('the serial is not an integer') end
  if length > 0 then
    local before = redis.call('ZREVRANGEBYLEX', data, '(' .. priority, '-', 'LIMIT', 0, 1)[1]
    local after = redis.call('ZRANGEBYLEX', data, '[' .. priority, '+', 'LIMIT', 0, 1)[1]
    for _, other in pairs({before, after}) do
      if unordered(priority, other) then return nil, string.sub(other, 1, -9) end
    end
  end
  return function(item)
    local arrival = struct.pack('>I8', redis.call('INCRBY', serial, 1))
    redis.call('ZADD', data, 0, priority .. arrival)
    redis.call('HSET', items, arrival, item)
    if length == 0 then redis.call('LPUSH', ready, '1') end
  end
end

-- A function that takes an item; or nil and an error where the server removed a part of it.
local function taking(data, length)
  redis.call('HLEN', items)
  redis.call('LLEN', ready)
  return function()
    local member = redis.call('ZPOPMIN', data)[1]
    local arrival = string.sub(member, -8)
    local item = redis.call('HGET', items, arrival)
    if not item then
      redis.call('ZADD', data, 0, member)
      return nil, redis.error_reply('LOST items')
    end
    redis.call('HDEL', items, arrival)
    if length == 1 then redis.call('DEL', ready) end
    return item, function()
      redis.call('ZADD', data, 0, member)
      redis.call('HSET', items, arrival, item)
      if length == 1 then redis.call('LPUSH', ready, '1') end
    end, member
  end
end

-- A function that puts an item back to its `place`, which taking it returned.
local function returning(data, length)
  redis.call('HLEN', items)
  redis.call('LLEN', ready)
  return function(item, place)
    redis.call('ZADD', data, 0, place)
    redis.call('HSET', items, string.sub(place, -8), item)
    if length == 0 then redis.call('LPUSH', ready, '1') end
    length = length + 1
  end
end

local function clear(data)
  redis.call('DEL', data, items, ready)
end
