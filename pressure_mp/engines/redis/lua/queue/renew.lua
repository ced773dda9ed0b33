-- renew: a process says that it is there, as one that has items in flight or as a producer, and hears of the others.
-- keys: bound presence producers consumed_bytes producer_free producer_claim producer_holder consumer_free consumer_claim consumer_holder waiting
-- args: owner lease consumes produces
-- replies: done now consumers producers again tickets | missing
-- uses: bound incarnation role line keepers
-- `consumers` and `producers` are names, each followed by the end of its lease in milliseconds. The rest is as of `keepers`.
if is_strange(KEYS[1], KEYS[4]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local now = milliseconds()
local expiry = string.format('%d', now + ARGV[2])
redis.call('HLEN', KEYS[3])
if ARGV[3] == '1' then redis.call('HSET', KEYS[2], ARGV[1], expiry) end
if ARGV[4] == '1' then redis.call('HSET', KEYS[3], ARGV[1], expiry, 'ever', '0') end
local again, tickets = keepers({KEYS[5], KEYS[6], KEYS[7]}, {KEYS[8], KEYS[9], KEYS[10]}, KEYS[11], ARGV[2])
return {'done', now, redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[3]), again, tickets}
