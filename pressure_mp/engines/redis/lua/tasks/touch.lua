-- touch: a taken task is kept for longer.
-- args: id owner call increment edit data digest whole
--   increment  milliseconds more; '' for the queue's ttr from now
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | missing
-- uses: storage life find taker
-- once: yes
if not settings then return {'missing'} end
sweep()
local id, owner, call, increment, edit, data, digest, whole = unpack(ARGV, 1, 8)
local task, refusal = held(id, owner, call)
if not task then return refusal end
if not is_known(id, digest) then return answer('changed') end
if task.ends > 0 then
  part(task, {}, 0)
  task.ends = increment ~= '' and task.ends + increment or math.max(task.ends, now + settings.ttr)
  note(added, due, task.ends, id)
  tell(task)
end
return answer_task(task, edit, data, whole)
