-- The fast path of `ack`: the task is gone, it was in no tube and no bundle, nobody asked for what came of
-- it, and nobody waits for what becomes of any. It is written straight, and what other cases need is not even built. Where it does not
-- apply nothing has changed. It moves nothing that is due, as that of `put`. Returns the record that the
-- task had.
local function ack_one(id, owner, call)
  if not settings or settings.keep or settings.zombie ~= 0 then return nil end
  local record = redis.call('HGET', records, id)
  if not record then return nil end
  local ends, bundle, _, number, result_ttl, tube, whose, inboxes = struct.unpack('>I8I4I4I8i8sss', record, 34)
  if result_ttl ~= 0 or inboxes ~= '' then return nil end
  if tube ~= '' or bundle > 0 or (ends > 0 and ends <= now) then return nil end
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
  return record
end
