-- The checks of scripts that open queues, in the keys beside these.

-- Return the discipline of a queue of the other kind with the same name, unless this is anonymous. If `asks` is empty,
-- the keys are at another server.
local function find_rival(bound, meta, user, asks)
  if asks == '' or user ~= '' or redis.call('EXISTS', bound) == 0 then return nil end
  return redis.call('HGET', meta, 'discipline') or 'fifo'
end

-- Note an anonymous queue with the host of a process that uses it; returns the notes from before, if the call asks for
-- them.
local function note_with_host(queues, queue, asks)
  local before = asks == '1' and redis.call('SMEMBERS', queues) or {}
  if queue ~= '' then redis.call('SADD', queues, queue) end
  return before
end
