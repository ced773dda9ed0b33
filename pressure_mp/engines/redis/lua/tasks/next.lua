-- next: a task was processed and is gone, and the next one is taken, each if its fast path applies.
-- keys: presence
-- args: id fence owner call ttr lease result
--   id     of the task that was processed
--   fence  the number of the take that has it
--   call   the number of the take that begins
--   ttr    as for take
--   result what came of it; '' if the taker says nothing
-- replies: done now | done bells now | done bells now id record data | declined
-- uses: storage tell_one ack_one take_one
-- once: yes
-- durable: yes
-- bare: yes
-- Without a task there is none that this can take: take looks. Declined is the ack, and nothing was done.
local id, fence, owner, call, ttr, lease, result = unpack(ARGV, 1, 7)
if not ack_one(id, owner, fence, result) then return nil end
-- What is wrong with what is ready is for take to say: the first task is processed all the same.
local fine, reply = pcall(take_one, KEYS[1], owner, call, ttr, lease)
local moment = string.format('%d', now)
if fine and reply then
  table.insert(reply, 3, moment)
  return reply
end
return #rung == 0 and moment or {'done', rung, moment}
