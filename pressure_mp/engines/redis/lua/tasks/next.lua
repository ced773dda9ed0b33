-- next: acknowledge and remove a processed task, and take the next one, each if its fast path applies.
-- given: bell
-- keys: presence
-- args: id fence owner call ttr lease result token mode
--   id     of the task that was processed
--   fence  the number of the take that has it
--   call   the number of the take that begins
--   ttr    as for take
--   result the result of the first one; '' if the taker gives none
--   token  of the content of the result, if that is in chunks
--   mode   wait | now: whether the caller will wait when there is none
-- `bell` is the bell of the inbox that is told of the processed task; of any name if none is.
-- replies: done idle | done now bells task... | declined
-- uses: storage notices ack_one take_one
-- once: yes
-- full: yes
-- durable: yes
-- bare: yes
-- `idle` is `now` if the caller has to call take for a task; or a space and the value `next` of take, if no task is
-- ready and the caller will wait. `declined`: the ack was declined, and nothing was done.
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
-- Errors in the ready tasks are left to take: the first task is processed all the same.
local fine, reply = pcall(take_one, KEYS[2], owner, call, ttr, lease, nil, box)
if not fine or not reply then return string.format('%d', now) end
table.insert(reply, 2, now)
return reply
