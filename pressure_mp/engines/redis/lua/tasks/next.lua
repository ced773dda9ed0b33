-- next: a task was processed and is gone, and the next one is taken, each if its short way applies.
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
-- What is wrong with what is ready is for take to say: the first task is processed all the same.
local fine, take = pcall(taking, KEYS[1], owner, call, ttr, lease)
take = fine and take
local ack = acking(id, owner, fence, take)
if not ack then return nil end
ack()
if not take then return string.format('%d', now) end
local reply = take()
reply[2] = now
return reply
