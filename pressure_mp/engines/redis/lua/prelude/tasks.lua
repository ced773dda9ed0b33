-- Return a counter as its text, '0' when it does not exist. Another value is an error, like the server's own for a
-- value that is no number.
local function read_count(key)
  local text = redis.call('GET', key) or '0'
  if #text > 19 or not string.match(text, '^%-?%d+$') then error('a count is not an integer') end
  return text
end

-- Unfinished items were produced and are not yet done. A foreign producer counts its message after it pushed it, so the
-- consumed count can be ahead for a moment.
local function unfinished(produced, consumed, done)
  local total = math.max(tonumber(read_count(produced)), tonumber(read_count(consumed)))
  return total - tonumber(read_count(done))
end

-- Mark `number` more items as done; returns how many are left.
local function finish(number, produced, consumed, done, finished)
  local left = unfinished(produced, consumed, done) - number
  redis.call('INCRBY', done, number)
  if left <= 0 and redis.call('LLEN', finished) == 0 then redis.call('LPUSH', finished, '1') end
  return left
end
