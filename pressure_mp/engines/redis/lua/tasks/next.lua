-- next: a task was processed and is gone, and the next one is taken, each if its fast path applies.
-- given: bell
-- keys: presence
-- args: id fence owner call ttr lease result token mode
--   id     of the task that was processed
--   fence  the number of the take that has it
--   call   the number of the take that begins
--   ttr    as for take
--   result what came of the first one; '' if the taker says nothing
--   token  of its content, if that is in chunks
--   mode   wait | now: whether the caller will wait when there is none
-- `bell` is that of the inbox that hears of the task that was processed; of any name if none does.
-- replies: done idle | done now bells task... | declined
-- uses: storage hearing ack_one take_one
-- once: yes
-- full: yes
-- durable: yes
-- bare: yes
-- `idle` is `now`, and take looks for a task; but a space and what take says as `next` when there is none, if
-- that is so and the caller will wait. Declined is the ack, and nothing was done.
local id, fence, owner, call, ttr, lease, result, token, mode = unpack(ARGV, 1, 9)
local record, _, box = ack_one(id, owner, fence, result, token, KEYS[1])
if not record then return nil end
if mode == 'wait' and not settings.closed and redis.pcall('ZCARD', ready) == 0 then
  local known, soon = pcall(next_due)
  if known and (soon == '' or soon > 1) then
    redis.call('DEL', wake)
    return string.format('%d %s', now, soon)
  end
end
-- What is wrong with what is ready is for take to say: the first task is processed all the same.
local fine, reply = pcall(take_one, KEYS[2], owner, call, ttr, lease, nil, box)
if not fine or not reply then return string.format('%d', now) end
table.insert(reply, 2, now)
return reply
