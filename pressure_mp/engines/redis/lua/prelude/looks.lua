-- Tell a reader that another client reads counts: its next call ends the reservation.
local function note_look(holder)
  redis.call('HDEL', holder, 'looked') -- after this write a full server refuses no other one
  redis.call('HSET', holder, 'looked', '1')
  return true
end

-- Whether a reader has reserved items, some of which it may have handed out; or a receiver the first one.
local function is_read(holder, data)
  local held = redis.call('HGET', holder, 'ticket') or ''
  return (is_reader(held) or (is_receiver(held) and redis.call('LLEN', data) > 0)) and note_look(holder)
end
