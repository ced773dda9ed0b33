-- Read the queue's bound, nil when the queue does not exist. Another value is an error, like the server's own for a
-- value that is no number.
local function parse_bound(text)
  if text == '0' then return 0 end -- as for most queues
  if not text then return nil end
  if #text > 300 or not string.match(text, '^%d+$') then error('the bound is not an integer') end
  return tonumber(text)
end

-- Return the bound, and its text.
local function read_bound(key)
  local text = redis.call('GET', key)
  return parse_bound(text), text
end

-- Return the discipline of the queue that has this value as its bound, and the text of the bound.
local function split_bound(text)
  parse_bound(text)
  return 'fifo', text
end

local function write_bound(key, text)
  redis.call('SET', key, text)
end

-- Whether the queue exists; its bound may be of any value, and any type.
local function is_there(key)
  return redis.call('EXISTS', key) == 1
end
