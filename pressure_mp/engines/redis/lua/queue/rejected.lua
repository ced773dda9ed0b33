-- rejected: list the items that were set aside, oldest first.
-- keys: bound rejected consumed_bytes
-- args: limit
-- replies: done items | missing
-- uses: bound incarnation
if has_former_keys(KEYS[1], KEYS[3]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local limit = tonumber(ARGV[1])
if limit == 0 then return {'done', {}} end -- -0 is no number to some servers, and the first to others
local items = redis.call('LRANGE', KEYS[2], -limit, -1)
local oldest_first = {}
for i = #items, 1, -1 do oldest_first[#oldest_first + 1] = items[i] end
return {'done', oldest_first}
