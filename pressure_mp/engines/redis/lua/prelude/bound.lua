-- The queue's bound, nil when there is no queue. What is no bound is an error, as the server's own
-- for a number that is none.
local function parse_bound(text)
  if text == '0' then return 0 end -- what most queues have
  if not text then return nil end
  if #text > 300 or not string.match(text, '^%d+$') then error('the bound is not an integer') end
  return tonumber(text)
end

local function read_bound(key)
  return parse_bound(redis.call('GET', key))
end
