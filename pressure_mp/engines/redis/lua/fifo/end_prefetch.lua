-- end_prefetch: requeue items at the front that a reader fetched and does not hand out.
-- keys: bound data not_full meta produced_messages consumed_messages consumed_bytes done finished returned fetched readers presence consumer_holder
-- args: reader call handed lease
--   call    its last call, which does nothing when it comes after this
--   handed  how many items it ever handed out
-- replies: done number
-- uses: role bound tasks deliveries front returns incarnation
-- `number` is how many of its items in all count as handed out. The others go back in the order of their numbers, and
-- beyond the bound if necessary. On a queue that was shut down with `immediate` they are dropped, and count as done. A
-- record of the call stays until the owner's lease has ended, and its items are requeued.
if has_former_keys(KEYS[1], KEYS[7]) then return ADOPT_FIRST end
local fetched, readers, presence, reader, call = KEYS[11], KEYS[12], KEYS[13], ARGV[1], tonumber(ARGV[2])
local _, last, told, left, _, batches = read_reader(redis.call('HGET', readers, reader))
local counted = count_handed(tonumber(ARGV[3]), told, left)
local bound = read_bound(KEYS[1])
if not bound then return {'done', counted} end
check_types({KEYS[2], KEYS[3], KEYS[9], KEYS[10]}, {KEYS[4], fetched, presence}, {KEYS[5], KEYS[6], KEYS[7], KEYS[8]})

redis.call('HDEL', readers, reader) -- after this write a full server refuses no other one
redis.call('HSET', readers, reader, write_reader(0, math.max(last, call), counted, 0))
local owner = owner_of(reader)
if last == 0 and redis.call('HEXISTS', presence, owner) == 0 then
  redis.call('HSET', presence, owner, string.format('%d', milliseconds() + tonumber(ARGV[4])))
end
local back = take_away(fetched, reader, batches, left - (counted - told))
if redis.call('HGET', KEYS[4], 'dropping') then
  finish(#back, KEYS[5], KEYS[6], KEYS[8], KEYS[9])
else
  return_items(back, bound, KEYS[2], KEYS[3], KEYS[6], KEYS[7], KEYS[10], KEYS[14])
end
return {'done', counted}
