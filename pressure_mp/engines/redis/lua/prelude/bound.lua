-- Read the queue's bound, nil when the queue does not exist. Another value is an error, like the server's own for a
-- value that is no number.
local function parse_bound(text)
  if text == '0' then return 0 end -- as for most queues
  if not text then return nil end
  if #text > 300 or not string.match(text, '^%d+$') then error('the bound is not an integer') end
  return tonumber(text)
end

local function read_bound(key)
  return parse_bound(redis.call('GET', key))
end
