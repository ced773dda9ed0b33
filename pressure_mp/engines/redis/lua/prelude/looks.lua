-- Whether a reader has reserved items, some of which it may have handed out. It is told that somebody looks: its
-- next call ends the reservation.
local function is_read(holder)
  if not is_reader(redis.call('HGET', holder, 'ticket') or '') then return false end
  redis.call('HDEL', holder, 'looked') -- a full server refuses no write behind that
  redis.call('HSET', holder, 'looked', '1')
  return true
end
