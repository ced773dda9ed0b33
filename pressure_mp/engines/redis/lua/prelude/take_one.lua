-- The fast path of `take`: one task, the next of all; it has no tube, no key of either kind and no ttl, and at most one inbox is told
-- of it. It writes directly, and the functions for other cases are not even defined. Where it does not apply nothing
-- has changed. `woken` is the key with the token that woke the caller, nil if it did not wait. `known` is the inbox
-- that `ack_one` has told of another task, as it is now; nil if there is none.
local function take_one(presence, owner, call, ttr, lease, woken, known)
  if not settings or settings.pauses then return nil end
  if settings.bound > 0 and redis.call('ZCARD', waiting) > 0 then return nil end -- for the space that it leaves
  local ends = lifetime(ttr ~= '' and tonumber(ttr) or settings.ttr)
  if ends > 0 and ends < now + TICK then return nil end
  if redis.call('ZCOUNT', due, '-inf', now) > 0 then return nil end -- it may be next
  local place = redis.call('ZRANGE', ready, 0, 0)[1]
  if not place then return nil end
  local id = string.sub(place, 17)
  local record, head, deliveries, result_ttl, hears, report = redis.call('HGET', records, id), nil, 0, 0, '', ''
  if record then
    local until_then, _, number, _, ttl, of, key, _, names, unique, at = struct.unpack('>I8I4I4I8i8sssss', record, 34)
    if until_then > 0 or of ~= '' or key ~= '' or unique ~= '' then return nil end
    head, deliveries, result_ttl, hears = string.sub(record, 2, 25), number, ttl, names
    report = string.sub(record, at)
  else
    head = string.sub(place, 1, 16) .. created(id)
  end
  local box = known
  if not known or known.name ~= hears then box = only_inbox(hears) end
  if box == false then return nil end
  local payload = redis.call('HGET', payloads, id)
  local there_until = tonumber(redis.call('HGET', presence, owner) or '0')
  if not known then redis.call('ZCARD', taken) end -- otherwise the script has written there
  -- A caller that was woken, or watched the time, wakes the next.
  local passes_on = woken and redis.call('LLEN', wake) == 0
    and (redis.call('ZCARD', ready) > 1 or redis.call('ZCOUNT', due, '-inf', now + TICK) > 0)

  redis.call('HINCRBY', counts, 'R-T', 1)
  redis.call('ZREM', ready, place)
  redis.call('ZADD', taken, 0, taken_prefix(owner, call) .. id)
  if ends > 0 then redis.call('ZADD', due, ends, id) end
  local new = 'T' .. head .. struct.pack('>I8I8I4I4I8i8', now, ends, 0, deliveries + 1, call, result_ttl)
    .. '\0\0' .. owner .. '\0' .. hears .. '\0\0' .. report
  redis.call('HSET', records, id, new)
  if there_until < now + lease / 2 then
    redis.call('HSET', presence, owner, string.format('%d', now + lease))
  end
  if woken then redis.call('DEL', woken) end
  if passes_on then redis.call('LPUSH', wake, '1') end
  local bells = ''
  if box and box.takes == 1 then
    local ticket = tell_only(box, 'T', id, deliveries + 1, report, false)
    if ticket ~= '' then bells = {ticket} end
  end
  return {'done', bells, id, new, payload, is_asked_for = true}
end
