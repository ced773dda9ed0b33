-- A counter as its text, '0' when it is not there. What is no count is an error, as the server's
-- own for a number that is none.
local function read_count(key)
  local text = redis.call('GET', key) or '0'
  if #text > 19 or not string.match(text, '^%-?%d+$') then error('a count is not an integer') end
  return text
end

-- Unfinished tasks are what was produced and not yet done. A foreign producer counts its message
-- after it pushed it, so what was consumed can be ahead for a moment.
local function unfinished(produced, consumed, done)
  local total = math.max(tonumber(read_count(produced)), tonumber(read_count(consumed)))
  return total - tonumber(read_count(done))
end

-- Mark `number` more tasks as done; returns how many are left.
local function finish(number, produced, consumed, done, finished)
  local left = unfinished(produced, consumed, done) - number
  redis.call('INCRBY', done, number)
  if left <= 0 and redis.call('LLEN', finished) == 0 then redis.call('LPUSH', finished, '1') end
  return left
end
