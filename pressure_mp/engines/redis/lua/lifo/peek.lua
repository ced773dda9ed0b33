-- peek: list the next items, and leave them queued.
-- keys: bound data
-- args: start limit
--   start  how many items to skip
-- replies: done items | missing
-- uses: bound
if not read_bound(KEYS[1]) then return {'missing'} end
local start, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local items, next_first = redis.call('LRANGE', KEYS[2], -start - limit, -start - 1), {}
for i = #items, 1, -1 do next_first[#next_first + 1] = items[i] end
return {'done', next_first}
