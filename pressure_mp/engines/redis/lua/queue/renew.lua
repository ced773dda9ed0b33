-- renew: a process says that it is there, as one that has items in flight or as a producer, and hears of the others.
-- keys: bound presence producers consumed_bytes
-- args: owner lease consumes produces
-- replies: done now consumers producers | missing
-- uses: bound incarnation
-- `consumers` and `producers` are names, each followed by the end of its lease in milliseconds.
if is_strange(KEYS[1], KEYS[4]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expiry = string.format('%d', now + ARGV[2])
redis.call('HLEN', KEYS[3])
if ARGV[3] == '1' then redis.call('HSET', KEYS[2], ARGV[1], expiry) end
if ARGV[4] == '1' then redis.call('HSET', KEYS[3], ARGV[1], expiry, 'ever', '0') end
return {'done', now, redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[3])}
