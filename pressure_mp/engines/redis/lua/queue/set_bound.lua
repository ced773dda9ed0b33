-- set_bound: change the queue's bound. Items beyond it stay; puts wait until there is space.
-- keys: bound data not_full
-- args: maxsize
-- replies: done | missing
-- uses: bound storage
if not is_there(KEYS[1]) then return {'missing'} end
local bound = tonumber(ARGV[1])
local length = size(KEYS[2])
local signs = redis.call('LLEN', KEYS[3])
write_bound(KEYS[1], ARGV[1])
if bound > 0 and length >= bound then
  redis.call('DEL', KEYS[3])
elseif signs == 0 then
  redis.call('LPUSH', KEYS[3], '1')
end
return {'done'}
