-- touch: keep a taken task, or a ready one, for longer.
-- args: id owner call increment edit data digest whole report
--   call       0 for a task that is ready
--   increment  milliseconds more; '' for the queue's ttr, or ttl, from now
--   report     the report on a taken task; '' leaves it. The inboxes of the task are told
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | missing
-- uses: storage notices changes limits groups transitions find taker
-- once: yes
-- full: yes
if not settings then return {'missing'} end
make_due_transitions()
local id, owner, call, increment, edit, data, digest, whole, report = unpack(ARGV, 1, 9)
local task, refusal = find(id), nil
local is_ready = call == '0' and report == '' and task and task.state == 'R'
if not is_ready then task, refusal = find_taken(id, owner, call) end
if not task then return refusal end
if not is_known(id, digest) then return finish('changed') end
if report ~= '' then task.report = report end
if task.ends > 0 then
  if not is_ready then leave_bundle(task, {}, 0) end
  local usual = is_ready and settings.ttl or settings.ttr
  task.ends = increment ~= '' and task.ends + increment or math.max(task.ends, now + usual)
  note(added, is_ready and expiry or due, task.ends, id)
end
if task.ends > 0 or report ~= '' then write_record(task) end
if report ~= '' and task.inboxes ~= '' then tell_inboxes(task.inboxes, 'G', id, task.deliveries, report) end
return finish_with(task, edit, data, whole)
