-- peek: the items whose turn it is next, which stay.
-- keys: bound data
-- args: start limit
--   start  how many to pass over
-- replies: done items | missing
-- uses: bound storage
if not read_bound(KEYS[1]) then return {'missing'} end
local found = {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], ARGV[1], ARGV[1] + ARGV[2] - 1)) do
  found[#found + 1] = redis.call('HGET', items, string.sub(member, -8)) or nil
end
return {'done', found}
