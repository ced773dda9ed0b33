-- Add `number` messages of `size` bytes together to two counters: both or neither. Returns the
-- messages counted so far, or nil and the server's error.
local function count(messages, bytes, size, number)
  local total = redis.pcall('INCRBY', messages, number)
  if type(total) == 'table' then return nil, total end
  local summed = redis.pcall('INCRBY', bytes, size)
  if type(summed) == 'table' then
    redis.call('INCRBY', messages, -number)
    return nil, summed
  end
  return total
end
