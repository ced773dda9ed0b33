-- put_back: requeue items at the front that a reader fetched and does not hand out.
-- keys: bound data not_full meta produced_messages consumed_messages consumed_bytes done finished returned fetched readers consumer_holder
-- args: reader call number unheard
--   number   how many it handed out: these are not requeued
--   unheard  1: the reply to that call was not read. The record stays, so that the call does nothing if it comes now
-- replies: done returned | late | missing
-- uses: bound tasks deliveries front returns incarnation
-- `late`: the items were taken away from this reader. Items go back in the order of their numbers, and beyond the bound
-- if necessary. On a queue that was shut down with `immediate` they are dropped, and count as done.
if has_former_keys(KEYS[1], KEYS[7]) then return ADOPT_FIRST end
local bound = read_bound(KEYS[1])
if not bound then return {'missing'} end
local fetched, readers, reader = KEYS[11], KEYS[12], ARGV[1]
local _, call, _, _, apart = read_reader(redis.call('HGET', readers, reader))
local asked, is_unheard = tonumber(ARGV[2]), ARGV[4] == '1'

local function leave()
  redis.call('HDEL', readers, reader) -- after this write a full server refuses no other one
  if is_unheard then redis.call('HSET', readers, reader, write_reader(0, asked, 0, 0, 0)) end
end

if call ~= asked then
  if is_unheard and call < asked then leave() end
  return {'late'}
end
check_types({KEYS[2], KEYS[3], KEYS[9], KEYS[10]}, {KEYS[4], fetched}, {KEYS[5], KEYS[6], KEYS[7], KEYS[8]})

local back = not_handed(fetched, reader, apart, tonumber(ARGV[3]))
drop_fetched(fetched, reader, apart)
leave()
if redis.call('HGET', KEYS[4], 'dropping') then
  finish(#back, KEYS[5], KEYS[6], KEYS[8], KEYS[9])
  return {'done', 0}
end
return {'done', return_items(back, bound, KEYS[2], KEYS[3], KEYS[6], KEYS[7], KEYS[10], KEYS[13])}
