-- next: a task was processed and is gone, and the next one is taken, each if its fast path applies.
-- keys: presence
-- args: id fence owner call ttr lease result
--   id     of the task that was processed
--   fence  the number of the take that has it
--   call   the number of the take that begins
--   ttr    as for take
--   result what came of the first one; '' if the taker says nothing
-- replies: done now | done now bells task... | declined
-- uses: storage hearing ack_one take_one
-- once: yes
-- durable: yes
-- bare: yes
-- Without a task there is none that this can take: take looks. Declined is the ack, and nothing was done.
local id, fence, owner, call, ttr, lease, result = unpack(ARGV, 1, 7)
local record, bells = ack_one(id, owner, fence, result)
if not record then return nil end
-- What is wrong with what is ready is for take to say: the first task is processed all the same.
local fine, reply = pcall(take_one, KEYS[1], owner, call, ttr, lease)
if not fine or not reply then
  if bells == '' then return string.format('%d', now) end
  return {'done', now, bells}
end
local others = reply[2]
if others ~= '' and bells ~= '' then bells[2] = others[1] end
table.insert(reply, 2, now)
reply[3] = bells ~= '' and bells or others
return reply
