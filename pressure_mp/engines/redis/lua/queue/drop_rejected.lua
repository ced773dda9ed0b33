-- drop_rejected: remove an item that was set aside, and with the next sweep its content.
-- keys: bound rejected uploads consumed_bytes
-- args: item
-- replies: done | absent | missing
-- uses: bound incarnation
-- once: yes
-- full: yes
if has_former_keys(KEYS[1], KEYS[4]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
redis.call('ZCARD', KEYS[3])
local item = ARGV[1]
if redis.call('LREM', KEYS[2], -1, item) == 0 then return {'absent'} end
if string.byte(item) == 250 and string.sub(item, 2, 4) == 'mp1' then
  redis.call('ZADD', KEYS[3], 0, string.sub(item, 5, 28))
end
return {'done'}
