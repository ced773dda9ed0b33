-- On the fast paths: one inbox hears of a task, and who waits for that is to be woken. What it writes was
-- read before by `is_to_hear`.

-- Those who are to be woken, as a reply has them.
local rung = {}

-- The inbox that is to hear of a task, '' if none is; nil if there are several, or one that is gone: then
-- the fast path does not apply.
local function is_to_hear(names)
  if names == '' then return '' end
  redis.call('ZCARD', notices)
  if redis.call('HEXISTS', inboxes, names) == 0 then return nil end
  return names
end

-- It hears so, unless the name is ''; returns the number of the notice. `is_alone`: '1' if the result is kept
-- for this inbox alone.
local function tell_one(name, event, id, deliveries, error, is_alone)
  if name == '' then return 0 end
  local lease, number, ticket = struct.unpack('>I8I8s', redis.call('HGET', inboxes, name))
  number = number + 1
  redis.call('ZADD', notices, 0, name .. '\0' .. struct.pack('>I8I4', number, deliveries) .. event .. is_alone
    .. id .. '\0' .. error)
  redis.call('HSET', inboxes, name, struct.pack('>I8I8s', lease, number, ''))
  if ticket ~= '' then rung[#rung + 1] = ticket end
  return number
end

local function to_be_rung()
  return #rung > 0 and rung or ''
end
