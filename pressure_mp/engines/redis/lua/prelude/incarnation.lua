-- What is kept beside the protocol's keys belongs to one queue, and not to a later one of the same name.
-- Another implementation that deletes a queue, and creates it again, knows the protocol's keys only;
-- and all their values can be again what they were. So what tells the two queues apart is beside a value:
-- the counter `consumed_bytes` has a time to live, of about 285,000 years. To count on does not change it,
-- and who deletes the queue deletes it too. Nothing that is kept belongs to a queue whose counter has none:
-- then the caller is to call `adopt`, and to call again.

local ADOPT_FIRST = redis.error_reply('ADOPT the queue first')

local function is_strange(bound, consumed_bytes)
  return redis.call('PTTL', consumed_bytes) < 0 and redis.call('EXISTS', bound) == 1
end

-- From now on what is kept belongs to this queue; `count` is what the counter has.
local function mark(consumed_bytes, count)
  redis.call('SET', consumed_bytes, count, 'PXAT', '9000000000000000')
end
