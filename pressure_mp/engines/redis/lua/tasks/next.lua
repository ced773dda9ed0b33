-- next: a task was processed and is gone, and the next one is taken, each if its fast path applies.
-- keys: presence
-- args: id fence owner call ttr lease
--   id     of the task that was processed
--   fence  the number of the take that has it
--   call   the number of the take that begins
--   ttr    as for take
-- replies: done now | done now id record data | declined
-- uses: storage ack_one take_one
-- once: yes
-- durable: yes
-- bare: yes
-- Without a task there is none that this can take: take looks. Declined is the ack, and nothing was done.
local id, fence, owner, call, ttr, lease = unpack(ARGV, 1, 6)
if not ack_one(id, owner, fence) then return nil end
-- What is wrong with what is ready is for take to say: the first task is processed all the same.
local fine, reply = pcall(take_one, KEYS[1], owner, call, ttr, lease)
if not fine or not reply then return string.format('%d', now) end
reply[2] = now
return reply
