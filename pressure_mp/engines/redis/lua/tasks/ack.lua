-- ack: a task was processed: it is gone, or stays as a zombie or as done.
-- args: id owner call delay tube shift edit data digest whole
--   delay   milliseconds as a zombie; '' for the queue's own
--   tube    where it goes, if `shift` is 1
--   data    the new data, if `edit` is 1
--   digest  of the data that the caller knows; '' if that does not matter
--   whole   1: return the data too
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | missing
-- uses: storage ack_one ack_first life find taker
-- once: yes
-- durable: yes
if not settings then return {'missing'} end
sweep()
local id, owner, call, delay, tube, shift, edit, data, digest, whole = unpack(ARGV, 1, 10)
local task, refusal = held(id, owner, call)
if not task then return refusal end
if not is_known(id, digest) then return finish('changed') end
processed(task, delay ~= '' and tonumber(delay) or settings.zombie, shift == '1' and tube or nil)
return finish_with(task, edit, data, whole)
