-- The keys beside the protocol's keys belong to one queue, and not to a later queue of the same name. Another
-- implementation that deletes a queue, and creates it again, knows only the protocol's keys; and all of their values
-- can be the same again. So a time to live tells the two queues apart, of about 285,000 years, on the counter
-- `consumed_bytes`. Counting does not change it, and a deletion of the queue deletes it too. If the counter has no time
-- to live, no key beside belongs to the queue: then the caller has to call `adopt`, and to repeat its call.

local ADOPT_FIRST = redis.error_reply('ADOPT the queue first')

local function has_former_keys(bound, consumed_bytes)
  return redis.call('PTTL', consumed_bytes) < 0 and redis.call('EXISTS', bound) == 1
end

-- Mark the keys from now on as this queue's; `count` is the value of the counter.
local function mark(consumed_bytes, count)
  redis.call('SET', consumed_bytes, count, 'PXAT', '9000000000000000')
end
