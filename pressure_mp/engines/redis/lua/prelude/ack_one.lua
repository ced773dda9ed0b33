-- The fast path of `ack`: the task is removed; it has no tube, no bundle and no key of either kind, at most one inbox is told of it,
-- the content of its result exists if it needs one, and no client waits for the end of a task. It writes directly, and
-- the functions for other cases are not even defined. Where it does not apply nothing has changed. Like the fast path
-- of `put`, it makes no transitions that are due; and it does not apply if there are many results to be removed. Returns
-- the record that the task had, the ticket of the waiter to wake, and the inbox, nil if there is none. `bell` is the
-- bell of the inbox, nil if the caller does not know it.
local function ack_one(id, owner, call, result, token, bell)
  if not settings or settings.keep or settings.zombie ~= 0 then return nil end
  local record = redis.call('HGET', records, id)
  if not record then return nil end
  local ends, bundle, deliveries, number, result_ttl, tube, key, taker, names, unique, at =
    struct.unpack('>I8I4I4I8i8sssss', record, 34)
  if tube ~= '' or key ~= '' or unique ~= '' or bundle > 0 or (ends > 0 and ends <= now) then return nil end
  if taker ~= owner or number ~= tonumber(call) then return nil end -- only a taken task has an owner
  if redis.call('HLEN', awaited) > 0 then return nil end
  local box, ticket = only_inbox(names), ''
  if box == false then return nil end
  if token ~= '' and tonumber(redis.call('ZSCORE', times, 'c' .. token) or '0') <= now then return nil end
  local is_heard = bell and box and box.ticket ~= '' and redis.call('LLEN', bell) == 0
  if result_ttl ~= 0 and redis.call('HEXISTS', results, id) == 1 then return nil end
  -- The complete script removes what is over, and this one adds to it: so that one is called once there are many.
  if result_ttl ~= 0 and redis.call('ZCOUNT', times, '-inf', now) >= MOST_DUE then return nil end
  redis.call('HLEN', payloads)
  redis.call('ZCARD', taken)
  if ends > 0 then redis.call('ZCARD', due) end

  redis.call('HINCRBY', counts, 'T-X', 1)
  redis.call('ZREM', taken, taken_prefix(owner, number) .. id)
  if ends > 0 then redis.call('ZREM', due, id) end
  redis.call('HDEL', records, id)
  redis.call('HDEL', payloads, id)
  if box and bell then
    ring_only(bell, is_heard, box, id, deliveries, string.sub(record, at), result_ttl ~= 0, result_ttl < 0,
      result, token)
  elseif box then
    ticket = tell_only(box, 'P', id, deliveries, string.sub(record, at), result_ttl < 0)
  end
  if result_ttl > 0 then
    redis.call('HSET', results, id, struct.pack(KEPT_RESULT, now + result_ttl, 0, 'P', '', token) .. result)
    redis.call('ZADD', times, now + result_ttl, 'r' .. id)
  elseif result_ttl < 0 and box then
    redis.call('HSET', results, id, struct.pack(KEPT_RESULT, 0, box.number, 'P', box.name, token) .. result)
  end
  if token ~= '' then
    local is_kept = result_ttl > 0 or (result_ttl < 0 and box)
    redis.call('ZADD', times, is_kept and '+inf' or '0', 'c' .. token)
  end
  return record, ticket ~= '' and {ticket} or '', box
end
