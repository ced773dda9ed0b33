-- reject: set aside an item that was got and cannot be decoded; it counts as done.
-- keys: bound produced_messages consumed_messages done finished rejected in_flight deliveries uploads consumed_bytes
-- args: item owner seq
--   owner, seq  the owner and number of the item in flight; empty when it was got for good
-- replies: done | late | missing
-- uses: bound tasks deliveries chunks incarnation
-- once: yes
-- full: yes
-- `late`: the item was taken away from this owner; nothing is done.
if has_former_keys(KEYS[1], KEYS[10]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
if ARGV[3] ~= '' then
  local deliveries, _, _, taker = read_delivery(redis.call('HGET', KEYS[8], ARGV[3]))
  if taker ~= ARGV[2] or deliveries == 0 then return {'late'} end
  redis.call('HDEL', KEYS[8], ARGV[3])
  redis.call('HDEL', KEYS[7], ARGV[3])
end
-- The content of a manifest is kept as long as the queue.
local _, token = size_of(KEYS[9], ARGV[1])
redis.call('LPUSH', KEYS[6], ARGV[1])
if token then redis.call('ZREM', KEYS[9], token) end
finish(1, KEYS[2], KEYS[3], KEYS[4], KEYS[5])
return {'done'}
