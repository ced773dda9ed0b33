-- reject: set aside an item that was got and cannot be decoded; it counts as done.
-- keys: bound produced_messages consumed_messages done finished rejected
-- args: item
-- replies: done | missing
-- uses: bound tasks
-- once: yes
if not read_bound(KEYS[1]) then return {'missing'} end
redis.call('LPUSH', KEYS[6], ARGV[1])
finish(1, KEYS[2], KEYS[3], KEYS[4], KEYS[5])
return {'done'}
