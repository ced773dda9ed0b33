-- peek: list the next items, and leave them queued.
-- keys: bound data
-- args: start limit
--   start  how many items to skip
-- replies: done items begin priorities | missing
-- uses: bound storage
if not read_bound(KEYS[1]) then return {'missing'} end
local found, priorities = {}, {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], ARGV[1], ARGV[1] + ARGV[2] - 1)) do
  local item = redis.call('HGET', items, string.sub(member, -8))
  if not item then return redis.error_reply('LOST items') end
  found[#found + 1] = item
  priorities[#priorities + 1] = string.sub(member, 1, -9)
end
return {'done', found, '', priorities}
