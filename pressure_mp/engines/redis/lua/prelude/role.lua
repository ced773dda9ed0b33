-- Where a role's token is, seen by the caller:
--   free     in the role's own list: nobody has it
--   mine     the caller took it in an earlier call and waits with it
--   granted  the server moved it from the free list to the claim list for the caller
--   ours     another client of this package waits with it, or was promised it
--   foreign  in no list: a client that follows the reference steps is at work
-- A holder of ours only ever waits (all else is one script), so a lease that ran out can be
-- ended here: the token goes back to the free list, where the server gives it to the first in
-- line. `turn` names the role that the caller's wait in line ended with, if it did. The second
-- answer is the ticket of the one of ours who holds the role, 'promised' when it was granted and
-- nobody came for it yet, or ''; the third is when such a promise ends; the fourth is since when the
-- caller has the role. Who is granted the role has `lease` milliseconds, from when it is first seen,
-- to come for it.
local function milliseconds()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function standing(name, turn, free, claim, holder, ticket, lease)
  if turn == name and redis.call('LLEN', claim) > 0 then return 'granted', '' end
  if redis.call('LLEN', free) > 0 then return 'free', '' end
  local held = redis.call('HMGET', holder, 'ticket', 'until', 'since')
  if held[1] == ticket then return 'mine', '', nil, held[3] end
  local promised = redis.call('LLEN', claim) > 0
  if not held[1] and not promised then return 'foreign', '' end
  local now = milliseconds()
  if not held[1] then
    -- One who dies between the grant and the next call must not keep the token for ever.
    held[2] = now + lease
    redis.call('HSET', holder, 'ticket', 'promised', 'until', string.format('%d', held[2]))
  elseif not (tonumber(held[2] or '') and tonumber(held[2]) >= now) then -- no number, no lease
    redis.call('DEL', holder, claim)
    redis.call('LPUSH', free, '1')
  end
  local ticket_held = held[1] or 'promised'
  return 'ours', ticket_held, ticket_held == 'promised' and tonumber(held[2])
end

-- Keep the role while waiting, for `lease` milliseconds. The first write is the one that a key
-- of the wrong type would refuse, so nothing is left half done.
local function hold(state, free, claim, holder, ticket, client, conn, lease)
  local now = milliseconds()
  local ends = string.format('%d', now + lease)
  local since = state ~= 'mine' and {'since', string.format('%d', now)} or {}
  redis.call('HSET', holder, 'ticket', ticket, 'client', client, 'conn', conn,
    'until', ends, 'lease', lease, unpack(since))
  if state == 'free' then redis.call('RPOP', free) end
  if state == 'granted' then redis.call('RPOP', claim) end
end

-- Whether to serve a call that came along with the caller's wait (turn `woken`): only while the
-- caller has the role, and for PROMPT milliseconds after it took it. Who may have been stopped, or
-- cut off, since then is asked again: nothing is given to one that does not answer.
local PROMPT = 10

local function is_prompt(since)
  since = tonumber(since or '')
  return since and milliseconds() - since <= PROMPT
end

local function give_back(state, free, claim, holder)
  if state == 'granted' then
    redis.call('DEL', holder)
    redis.call('RPOPLPUSH', claim, free)
  elseif state == 'mine' then
    redis.call('DEL', holder)
    if redis.call('LLEN', free) == 0 then redis.call('LPUSH', free, '1') end
  end
end
