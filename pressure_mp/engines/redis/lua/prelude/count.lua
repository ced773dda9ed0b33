-- Add one message of `size` bytes to two counters: both or neither. Answers the messages
-- counted so far, or nil and the server's error.
local function count(messages, bytes, size)
  local total = redis.pcall('INCR', messages)
  if type(total) == 'table' then return nil, total end
  local summed = redis.pcall('INCRBY', bytes, size)
  if type(summed) == 'table' then
    redis.call('DECR', messages)
    return nil, summed
  end
  return total
end
