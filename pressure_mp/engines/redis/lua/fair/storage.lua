-- keys: items ready tenants clock
-- item: ready
-- Fair by key, in rounds: in each round, each key with queued items has as many items served as its weight, which is 1
-- by default. An item gets its round when it arrives: the round after the present one, or a later one when the key's
-- share of that is used up. So the sorted set has the round as score, and as member the number of the arrival, in eight
-- bytes, and the key; its smallest is next. `items` has the items by number of arrival. `tenants` has for each key with
-- queued items the last round in which it has a share, how much of that is used up, and how many items are queued.
-- `clock` has the number of the last arrival, and the present round: the round of the item that was served last.
-- `ready` has one element exactly while an item is queued.

local function size(data)
  return redis.call('ZCARD', data)
end

local function read_tenant(key)
  local last, used, queued =
    string.match(redis.call('HGET', tenants, key) or '0 0 0', '^(%d+) (%d+) (%d+)$')
  return tonumber(last), tonumber(used), tonumber(queued)
end

local function write_tenant(key, last, used, queued)
  if queued == 0 then
    redis.call('HDEL', tenants, key)
  else
    redis.call('HSET', tenants, key, string.format('%.0f %.0f %.0f', last, used, queued))
  end
end

-- A function that adds an item. `order` is the key's weight and the key.
local function placing(data, length, order)
  local weight, key = string.match(order, '^(%d+) (.*)$')
  local now = redis.call('HMGET', clock, 'arrival', 'round')
  local last, used, queued = read_tenant(key)
  redis.call('HLEN', items)
  redis.call('LLEN', ready)
  local round = (tonumber(now[2]) or 0) + 1
  if last >= round then
    round = used < tonumber(weight) and last or last + 1
  end
  if round > last then used = 0 end
  return function(item)
    local number = (tonumber(now[1]) or 0) + 1
    local arrival = struct.pack('>I8', number)
    redis.call('ZADD', data, string.format('%.0f', round), arrival .. key)
    redis.call('HSET', items, arrival, item)
    redis.call('HSET', clock, 'arrival', string.format('%.0f', number))
    write_tenant(key, round, used + 1, queued + 1)
    if length == 0 then redis.call('LPUSH', ready, '1') end
  end
end

-- A function that takes an item; or nil and an error where the server removed a part of it.
local function taking(data, length)
  redis.call('HLEN', items)
  redis.call('LLEN', ready)
  redis.call('HLEN', tenants)
  local before = redis.call('HGET', clock, 'round') or '0'
  return function()
    local member, round = unpack(redis.call('ZPOPMIN', data))
    local arrival, key = string.sub(member, 1, 8), string.sub(member, 9)
    local item = redis.call('HGET', items, arrival)
    if not item then
      redis.call('ZADD', data, round, member)
      return nil, redis.error_reply('LOST items')
    end
    local last, used, queued = read_tenant(key)
    redis.call('HDEL', items, arrival)
    write_tenant(key, last, used, queued - 1)
    if round ~= before then redis.call('HSET', clock, 'round', round) end
    if length == 1 then redis.call('DEL', ready) end
    return item, function()
      redis.call('ZADD', data, round, member)
      redis.call('HSET', items, arrival, item)
      write_tenant(key, last, used, queued)
      redis.call('HSET', clock, 'round', before)
      if length == 1 then redis.call('LPUSH', ready, '1') end
    end, round .. ' ' .. member
  end
end

-- A function that puts an item back to its `place`, which taking it returned. Its key's share of the
-- round stays used up.
local function returning(data, length)
  local anew = {}  -- the keys without queued items: their used shares are not kept
  redis.call('HLEN', items)
  redis.call('LLEN', ready)
  redis.call('HLEN', tenants)
  return function(item, place)
    local round, member = string.match(place, '^(%d+) (.*)$')
    local arrival, key = string.sub(member, 1, 8), string.sub(member, 9)
    local last, used, queued = read_tenant(key)
    if queued == 0 then
      last, used, anew[key] = tonumber(round), 1, true
    elseif anew[key] and last == tonumber(round) then
      used = used + 1
    end
    redis.call('ZADD', data, round, member)
    redis.call('HSET', items, arrival, item)
    write_tenant(key, last, used, queued + 1)
    if length == 0 then redis.call('LPUSH', ready, '1') end
    length = length + 1
  end
end

local function clear(data)
  redis.call('DEL', data, items, ready, tenants)
end
