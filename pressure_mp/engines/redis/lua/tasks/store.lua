-- store: store one chunk of the content of a result that will be set.
-- args: token number lease chunk
--   number  of the chunk, from 0 on
-- replies: done | lost | missing
-- uses: storage
-- `lost`: no chunk came for longer than the lease, so earlier chunks may have been removed.
if not settings then return {'missing'} end
local token, number, lease = ARGV[1], ARGV[2], math.max(tonumber(ARGV[3]), 3000)
local ends = tonumber(redis.call('ZSCORE', times, 'c' .. token) or '0')
if number ~= '0' and ends <= now then return {'lost'} end
redis.call('HSET', chunks, string.format('%s:%d', string.sub(token, 1, 16), number), ARGV[4])
redis.call('ZADD', times, string.format('%d', now + lease), 'c' .. token)
return {'done'}
