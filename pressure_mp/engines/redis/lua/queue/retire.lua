-- retire: remove a process from the producers of the queue.
-- keys: bound producers consumer_holder consumed_bytes
-- args: owner seen
--   seen  the end of its lease, as the caller saw it; empty: whatever the lease says
-- replies: done holder | renewed | missing
-- uses: bound incarnation
-- `done` names the connection (or '') that waits for an item, when no producer is left: wake it.
if has_former_keys(KEYS[1], KEYS[4]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local producers = KEYS[2]
if ARGV[2] ~= '' and redis.call('HGET', producers, ARGV[1]) ~= ARGV[2] then return {'renewed'} end
local conn = redis.call('HGET', KEYS[3], 'conn') or ''
redis.call('HDEL', producers, ARGV[1])
if redis.call('HLEN', producers) > 1 then conn = '' end
return {'done', conn}
