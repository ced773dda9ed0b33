-- Where a role's token is, seen by the caller:
--   free     in the role's own list: no client has it
--   mine     the caller took it in an earlier call and waits with it
--   granted  the server moved it from the free list to the granted list for the caller
--   ours     another client of this package waits with it, or was granted it
--   reserved a reader of this package has it, and with it the oldest items, see `reserve`; or a receiver that
--            waits for the item which is in `data` now, see `get_or_wait`
--   foreign  in no list: a client that follows the reference steps is at work
-- A holder of this package only waits (all else is one script), so a lease that is over can be ended here: the token
-- goes back to the free list, where the server gives it to the first in line. `turn` names the role with which the
-- caller's wait in line ended, if it did. The second value is the ticket of the client of this package that holds the
-- role, 'granted' when it was granted and not used yet, or ''; the third is the end of that lease or grant, 0 when it
-- was ended just now.
--
-- A client that is granted the role has a third of a lease, from when the grant is first seen, to use it. Otherwise the
-- role goes to the next client, which has half of that time: so all stopped clients in line together delay the next one
-- by less than a lease. After a lease that is over the first time is shorter, since the waiting clients have waited for
-- that. The token has that time, and until when it holds (a lease later), so that much later grants have the whole time
-- again: the specification leaves the value of the lists' element undefined.
local AFTER_LEASE = 250

-- Waiting clients end a reader's reservation, as they may know how many items it handed out ("end_reservation").
local function is_reader(ticket)
  return string.find(ticket, ':reader-', 1, true) ~= nil
end

-- The first item is on its way to the client that waits for one with such a ticket: no other client takes an item
-- meanwhile.
local function is_receiver(ticket)
  return string.find(ticket, ':receiver-', 1, true) ~= nil
end

local function milliseconds()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function read_role(name, turn, free, granted, holder, ticket, lease, data)
  if turn == name and redis.call('LLEN', granted) > 0 then return 'granted', '' end
  if redis.call('LLEN', free) > 0 then return 'free', '' end
  local held, till, length = unpack(redis.call('HMGET', holder, 'ticket', 'until', 'lease'))
  if held == ticket then return 'mine', '' end
  local token = redis.call('LINDEX', granted, 0)
  if not held and not token then return 'foreign', '' end
  local now = milliseconds()
  if not held then
    local short, valid = string.match(token, '^grant (%d+) (%d+)$')
    held, length = 'granted', short and now <= tonumber(valid) and short or math.ceil(lease / 3)
    till = now + length
    redis.call('HSET', holder, 'ticket', held, 'until', string.format('%d', till), 'lease', length)
  elseif is_reader(held) then
    return 'reserved', held, tonumber(till) or 1
  elseif not (tonumber(till or '') and tonumber(till) >= now) then -- no number, no lease
    local left = math.min(lease / 20, AFTER_LEASE)
    if token then left = (tonumber(length or '') or 0) / 2 end
    redis.call('DEL', holder, granted)
    redis.call('LPUSH', free, string.format('grant %d %d', math.max(left, 1), now + lease))
    till = 0
  elseif data and is_receiver(held) and redis.call('LLEN', data) > 0 then
    return 'reserved', held, tonumber(till)
  end
  return 'ours', held, tonumber(till)
end

-- Keep the role while waiting, for `lease` milliseconds. The first write would fail on a key of the wrong type, so
-- nothing is left half done.
local function hold(state, free, granted, holder, ticket, client, conn, lease)
  local now = milliseconds()
  local ends = string.format('%d', now + lease)
  local since = state ~= 'mine' and {'since', string.format('%d', now)} or {}
  redis.call('HSET', holder, 'ticket', ticket, 'client', client, 'conn', conn,
    'until', ends, 'lease', lease, unpack(since))
  if state == 'free' then redis.call('RPOP', free) end
  if state == 'granted' then redis.call('RPOP', granted) end
end

-- Whether the token for space has been missing for a lease, as seen by a call that waits and has a role. Until then
-- another implementation may be about to set it, or to fill the queue.
local function is_overdue(state, holder, is_missing, lease)
  if state ~= 'mine' then return false end
  local since = tonumber(redis.call('HGET', holder, 'no_sign_since') or '')
  if not is_missing then
    if since then redis.call('HDEL', holder, 'no_sign_since') end
    return false
  end
  local now = milliseconds()
  if not since then redis.call('HSET', holder, 'no_sign_since', string.format('%d', now)) end
  return since ~= nil and now - since >= tonumber(lease)
end

local function give_back(state, free, granted, holder)
  if state == 'granted' then
    redis.call('DEL', holder)
    redis.call('RPOPLPUSH', granted, free)
  elseif state == 'mine' then
    redis.call('DEL', holder)
    if redis.call('LLEN', free) == 0 then redis.call('LPUSH', free, '1') end
  end
end
