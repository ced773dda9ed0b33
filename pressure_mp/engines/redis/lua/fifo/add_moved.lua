-- add_moved: add items that were in memory which the processes of one host share.
-- keys: data bound not_full produced_messages produced_bytes consumed_messages consumed_bytes meta producer done
-- args: first size done front client number item...
--   first   how many items came before them there, and were taken, or added by such a call
--   size    the bytes of the taken ones
--   done    how many items are done
--   front   1: they were taken there, counted as consumed, and go to the front, in order
--   number  how many items there are
-- replies: done | missing
-- uses: bound count incarnation
-- once: yes
-- `moved` in meta is the number of the next item: items of a call whose reply was lost are not added again.
local first, size, all = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[6])
local meta = KEYS[8]
if has_former_keys(KEYS[2], KEYS[7]) then return ADOPT_FIRST end
local bound = read_bound(KEYS[2])
if not bound then return {'missing'} end
local length = redis.call('LLEN', KEYS[1])
redis.call('LLEN', KEYS[3]) -- checks the type before the first write
local moved = tonumber(redis.call('HGET', meta, 'moved'))
local front = ARGV[4] == '1'
local skip = not front and moved and moved - first or 0
local number, bytes = all - skip, 0
if number < 0 then return {'done'} end
for i = 7 + skip, 6 + all do bytes = bytes + #ARGV[i] end
if front then
  local total, problem = count(KEYS[6], KEYS[7], -bytes, -number)
  if not total then return problem end
  for i = 6 + all, 7, -1 do redis.call('RPUSH', KEYS[1], ARGV[i]) end
else
  local taken = moved and 0 or first
  local total, problem = count(KEYS[4], KEYS[5], bytes + (moved and 0 or size), number + taken)
  if not total then return problem end
  if not moved then
    total, problem = count(KEYS[6], KEYS[7], size, taken)
    if not total then return problem end
    if ARGV[3] ~= '0' then redis.call('INCRBY', KEYS[10], ARGV[3]) end
  end
  if number > 0 then redis.call('LPUSH', KEYS[1], unpack(ARGV, 7 + skip, 6 + all)) end
  redis.call('HSET', meta, 'moved', first + all)
end
if number > 0 then redis.call('SET', KEYS[9], ARGV[5]) end
if bound > 0 and length + number >= bound then redis.call('DEL', KEYS[3]) end
return {'done'}
