-- Unfinished tasks are what was produced and not yet done. A foreign producer counts its message
-- after it pushed it, so what was consumed can be ahead for a moment.
local function unfinished(produced, consumed, done)
  local total = math.max(
    tonumber(redis.call('GET', produced) or '0'), tonumber(redis.call('GET', consumed) or '0'))
  return total - tonumber(redis.call('GET', done) or '0')
end

-- Mark `number` more tasks as done; answers how many are left.
local function finish(number, produced, consumed, done, finished)
  redis.call('INCRBY', done, number)
  local left = unfinished(produced, consumed, done)
  if left <= 0 and redis.call('LLEN', finished) == 0 then redis.call('LPUSH', finished, '1') end
  return left
end
