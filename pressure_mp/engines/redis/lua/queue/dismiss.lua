-- dismiss: remove processes from the users of an anonymous queue; the last one removes the queue.
-- keys: bound users data producer consumer producer_free consumer_free produced_messages produced_bytes consumed_messages consumed_bytes not_full closed meta done finished rejected producer_granted producer_holder consumer_granted consumer_holder deleting waiting in_flight deliveries presence returned producers fetched readers uploads chunks
-- args: user...
-- replies: done left | missing
-- uses: bound storage incarnation
-- Also `missing` when the queue has no users: it is another one, which stays.
if not is_there(KEYS[1]) or has_former_keys(KEYS[1], KEYS[11]) then return {'missing'} end
if redis.call('HLEN', KEYS[2]) == 0 then return {'missing'} end
redis.call('HDEL', KEYS[2], unpack(ARGV))
local left = redis.call('HLEN', KEYS[2])
if left == 0 then redis.call('UNLINK', unpack(KEYS)) end
return {'done', left}
