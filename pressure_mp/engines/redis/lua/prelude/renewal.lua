-- Renew the leases of a process, and return all other leases. A queue's keys are `RENEWED` in scripts.py,
-- and the list on which calls wait for an item. `tickets` are the tickets of its waiting operations: each keeps its
-- role, or its place in line, and is `due` when there is something for it to do.

-- Whether a ticket has the role, which it keeps then: the lease is renewed when a third of it is over.
local function keeps_role(ticket, holder, held, now)
  local till, length = tonumber(held[2] or ''), tonumber(held[3] or '')
  if held[1] ~= ticket or not till or not length then return false end
  if till - now < length * 2 / 3 then redis.call('HSET', holder, 'until', string.format('%d', now + length)) end
  return true
end

-- Return the role for which a ticket is in line, and keep its place: its entry is renewed when a fourth of its time is
-- over.
local function keeps_place(ticket, waiting, now)
  local role, since, seen, kept, client = read_entry(redis.call('HGET', waiting, ticket) or '')
  if role and now - seen > kept / 4 then
    redis.call('HSET', waiting, ticket, string.format('%s %d %d %d %s', role, since, now, kept, client))
  end
  return role
end

local function renew_waiters(tickets, producer, consumer, waiting, closed, space, uploads, item, producers, now)
  if #tickets == 0 then return {} end
  local held = {
    producer = redis.call('HMGET', producer, 'ticket', 'until', 'lease'),
    consumer = redis.call('HMGET', consumer, 'ticket', 'until', 'lease'),
  }
  local over = redis.call('EXISTS', closed) == 1
  local signs, some = redis.call('LLEN', space), redis.call('LLEN', item)
  -- An empty queue has space: if its token for space is missing, the operation measures for how long, see `is_overdue`.
  -- A consumer removes the contents that killed clients left, and may wait for the end of all producers.
  local left = redis.call('EXISTS', uploads) == 1 or redis.call('HLEN', producers) == 1
  local served = {producer = over or signs > 0 or some == 0, consumer = over or some > 0 or signs == 0 or left}
  local due = {}
  for _, ticket in ipairs(tickets) do
    local role = keeps_role(ticket, producer, held.producer, now) and 'producer'
      or keeps_role(ticket, consumer, held.consumer, now) and 'consumer'
      or keeps_place(ticket, waiting, now)
    -- It is in line for a role that no client of this package has: the role is free, or with another implementation, or
    -- lost.
    if not role or not held[role][1] or served[role] then due[#due + 1] = ticket end
  end
  return due
end

local function renewal(keys, owner, lease, consumes, produces, tickets)
  local bound, _, presence, producers, p_free, p_granted, p_holder, c_free, c_granted, c_holder, waiting, closed, space,
    p_last, c_last, uploads, item = unpack(keys)
  if not read_bound(bound) then return {'missing'} end
  local now = milliseconds()
  local expiry = string.format('%d', now + lease)
  redis.call('HLEN', producers)
  redis.call('HDEL', presence, '') -- needs no memory: so the commands after it are allowed when the server has none
  if consumes == '1' then redis.call('HSET', presence, owner, expiry) end
  if produces == '1' then redis.call('HSET', producers, owner, expiry, 'ever', '0') end
  local due = renew_waiters(tickets, p_holder, c_holder, waiting, closed, space, uploads, item, producers, now)
  local producer, consumer = {p_free, p_granted, p_holder, p_last}, {c_free, c_granted, c_holder, c_last}
  local again, named, never_held = holders(producer, consumer, waiting, lease)
  if #never_held > 0 then again = 0 end -- then `holders` says which roles
  return {'done', now, redis.call('HGETALL', presence), redis.call('HGETALL', producers), again, named, due}
end
