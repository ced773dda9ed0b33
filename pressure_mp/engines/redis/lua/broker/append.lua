-- append: keep a sample of all queues, unless one was kept a short time ago.
-- keys: samples
-- args: every keep ttl data
--   every  milliseconds in which no other sample is kept
--   keep   how many samples stay
--   ttl    milliseconds for which all of them stay after this one
-- replies: done | declined
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local newest = redis.call('LINDEX', KEYS[1], -1)
local at = newest and tonumber(string.match(newest, '^(%d+) '))
-- After the clock was set back samples are still kept, and the newest stays last.
if at and at <= now and now - at < tonumber(ARGV[1]) then return {'declined'} end
if at and at >= now then now = at + 1 end
redis.call('RPUSH', KEYS[1], string.format('%d ', now) .. ARGV[4])
for _ = ARGV[2] + 1, redis.call('LLEN', KEYS[1]) do redis.call('LPOP', KEYS[1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'done'}
