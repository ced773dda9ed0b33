-- Replaces `bound` for queues of other disciplines than the protocol's, whose keys have the same names. So the value is
-- the discipline, a space and the bound: a queue of another discipline, which was created under the name of a deleted
-- queue, does not exist for a script of that one. `DISCIPLINE` is the script's own, and `UNBOUNDED` the value for its
-- queues without a bound.
local function split_bound(text)
  local discipline, bound = string.match(text, '^(%l+) (%d+)$')
  if not bound or #bound > 300 then error('the bound is not an integer') end
  return discipline, bound
end

local function read_bound(key)
  local text = redis.call('GET', key)
  if text == UNBOUNDED then return 0, '0' end -- as for most queues
  if not text then return nil end
  local discipline, bound = split_bound(text)
  if discipline ~= DISCIPLINE then return nil end
  return tonumber(bound), bound
end

local function write_bound(key, text)
  redis.call('SET', key, string.format('%s %s', DISCIPLINE, text))
end

-- A queue whose bound no client wrote is there: it can be deleted.
local function is_there(key)
  if redis.call('EXISTS', key) == 0 then return false end
  local text = redis.pcall('GET', key)
  local discipline = type(text) == 'string' and string.match(text, '^(%l+) %d+$')
  return not discipline or discipline == DISCIPLINE
end
