-- What opens queues of every kind looks at beside them.

-- The discipline of a queue of the other kind that has the name of one that is not anonymous. Where `asks` is
-- empty the keys are not at hand.
local function find_rival(bound, meta, user, asks)
  if asks == '' or user ~= '' or redis.call('EXISTS', bound) == 0 then return nil end
  return redis.call('HGET', meta, 'discipline') or 'fifo'
end

-- Note an anonymous queue with the host of a process that uses it; returns what was noted before, if that is asked.
local function note_with_host(queues, queue, asks)
  local before = asks == '1' and redis.call('SMEMBERS', queues) or {}
  if queue ~= '' then redis.call('SADD', queues, queue) end
  return before
end
