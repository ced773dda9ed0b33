-- The short way of `ack`: the task is gone, it was in no tube, and nobody waits for what becomes of
-- any. It is written straight, and what other cases need is not even built. Where it does not apply
-- nothing has changed, and `ack` goes on. It moves nothing that is due, as that of `put`.
local function ack_one()
  if not settings or settings.keep or settings.zombie > 0 then return nil end
  local id, owner, call, delay, _, shift, _, _, digest, whole = unpack(ARGV, 1, 10)
  if delay ~= '' or shift ~= '0' or digest ~= '' or whole ~= '0' then return nil end
  local record = redis.call('HGET', records, id)
  if not record then return nil end
  local ends, _, number, tube, whose = struct.unpack('>I8I8I8ss', record, 34)
  if tube ~= '' or (ends > 0 and ends <= now) then return nil end
  if whose ~= owner or number ~= tonumber(call) then return nil end -- only what is taken has an owner
  if redis.call('HLEN', awaited) > 0 then return nil end
  redis.call('HLEN', payloads)
  redis.call('ZCARD', taken)
  if ends > 0 then redis.call('ZCARD', due) end

  redis.call('HINCRBY', counts, 'T-X', 1)
  redis.call('ZREM', taken, hold(owner, number) .. id)
  if ends > 0 then redis.call('ZREM', due, id) end
  redis.call('HDEL', records, id)
  redis.call('HDEL', payloads, id)
  local told = 'X' .. string.sub(record, 2, 25) .. struct.pack('>I8I8', now, 0) .. string.sub(record, 42)
  return {'done', '', told, ''}
end

local at_once = ack_one()
if at_once then return at_once end
