-- item: data
-- First in, first out: a list. New items come in on the left, the oldest is on the right.
local function size(data)
  return redis.call('LLEN', data)
end

-- A function that adds an item. The keys that it writes were read before, which checks their types.
local function placing(data)
  return function(item) redis.call('LPUSH', data, item) end
end

-- A function that takes the next item; returns it, and a function that undoes that.
local function taking(data)
  return function()
    local item = redis.call('RPOP', data)
    return item, function() redis.call('RPUSH', data, item) end
  end
end

-- A function that puts a taken item back; the last one put back is the next one taken.
local function returning(data)
  return function(item) redis.call('RPUSH', data, item) end
end

local function clear(data)
  redis.call('DEL', data)
end
