-- acknowledge: acknowledge an item in flight.
-- keys: bound produced_messages consumed_messages done finished in_flight deliveries uploads chunks consumed_bytes
-- args: owner seq
--   seq  the item, or empty when the owner has none: then the oldest in flight, if there is one
-- replies: done unfinished left | passed | late | excess | missing
-- uses: bound tasks deliveries chunks incarnation
-- once: yes
-- full: yes
-- `passed`: another process acknowledged this item before, as it had none of its own. `late`: the item was taken away
-- from this owner; it is, or was, another's. `left` is there when the content was in chunks, which are removed now: the
-- number of contents with more to remove, see sweep.
if has_former_keys(KEYS[1], KEYS[10]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local owner, seq = ARGV[1], ARGV[2]
local in_flight, records = KEYS[6], KEYS[7]
local left, gone = unfinished(KEYS[2], KEYS[3], KEYS[4])
if seq ~= '' then
  local deliveries, _, _, taker, token = read_delivery(redis.call('HGET', records, seq))
  gone = token
  if taker ~= owner then return {'late'} end
  -- forward: if only_checks and deliveries > 0 and left > 0 then
  -- forward:   redis.call('HEXISTS', in_flight, seq)
  -- forward:   redis.call('LLEN', KEYS[5])
  -- forward:   redis.call('ZCARD', KEYS[8])
  -- forward:   return {'may'}
  -- forward: end
  redis.call('HDEL', records, seq)
  if deliveries == 0 then return {'passed'} end
  redis.call('HDEL', in_flight, seq)
else
  local oldest
  for _, candidate in ipairs(redis.call('HKEYS', in_flight)) do
    if not oldest or tonumber(candidate) < tonumber(oldest) then oldest = candidate end
  end
  if oldest then
    local _, limit, call, taker, token = read_delivery(redis.call('HGET', records, oldest))
    gone = token
    redis.call('HDEL', in_flight, oldest)
    redis.call('HSET', records, oldest, string.format('0 %d %s %s', limit, call, taker))
  end
end
if gone then redis.call('ZADD', KEYS[8], 0, gone) end
if left <= 0 then return {'excess'} end
left = finish(1, KEYS[2], KEYS[3], KEYS[4], KEYS[5])
if not gone then return {'done', left} end
return {'done', left, sweep_contents(KEYS[8], KEYS[9])}
