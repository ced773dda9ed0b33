-- set_bound: change the queue's bound. Items over it stay; puts wait until it has room.
-- keys: bound data not_full producer_holder
-- args: anyway process maxsize
--   anyway, process  as of `length`
-- replies: done | reserved | missing
-- uses: role looks storage
-- `reserved`: space is, for items that were accepted.
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
if ARGV[1] == '0' and is_written(KEYS[4], ARGV[2]) then return {'reserved'} end
local bound = tonumber(ARGV[3])
local length = size(KEYS[2])
local signs = redis.call('LLEN', KEYS[3])
redis.call('SET', KEYS[1], ARGV[3])
if bound > 0 and length >= bound then
  redis.call('DEL', KEYS[3])
elseif signs == 0 then
  redis.call('LPUSH', KEYS[3], '1')
end
return {'done'}
