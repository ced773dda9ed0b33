-- item: data
-- Last in, first out: a list whose items come and leave on the right.
local function size(data)
  return redis.call('LLEN', data)
end

local function placing(data)
  return function(item) redis.call('RPUSH', data, item) end
end

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
