-- change: bring one task from a state into another, or into another tube, for an administrator.
-- args: id from to delay ttl tube shift edit data digest
--   from   the letters of the states that it may be in
--   to     the letter of the new state, X to remove it; '' keeps its state, but makes a taken task ready
--   delay  milliseconds until a waiting task is ready, or a zombie removed; 0 for none
--   ttl    milliseconds for which it is ready; '' for the queue's own
--   tube   its new tube, if `shift` is 1
-- replies: done bells record data | absent bells | wrong bells state | changed bells | missing
-- uses: storage notices changes limits groups transitions find taker
-- once: yes
-- full: yes
if not settings then return {'missing'} end
make_due_transitions()
local id, from, to, delay, ttl, tube, shift, edit, data, digest = unpack(ARGV, 1, 10)
local task = find(id)
if not task then return finish('absent') end
if not string.find(from, task.state, 1, true) then return finish('wrong', task.state) end
if not is_known(id, digest) then return finish('changed') end
local before = task.state
delay, ttl, tube = tonumber(delay), ttl ~= '' and tonumber(ttl) or nil, shift == '1' and tube or nil
local told = edit == '1' and data or redis.call('HGET', payloads, id)
if edit == '1' then note(set, payloads, id, data) end
if to == '' and task.state == 'T' then to = 'R' end
if task.state == 'B' and (to == 'R' or to == 'W') then task.deliveries = 0 end
if to == '' then
  if tube ~= task.tube then
    leave_sets(task)
    count_shift(task.state, task.state, task.tube, tube)
    task.tube = tube
    enter_sets(task)
    write_record(task)
  end
elseif to == 'X' then
  remove_task(task, 'K')
elseif to == 'R' or to == 'W' then
  make_ready(task, delay, ttl, tube)
else
  change_state(task, to, to == 'Z' and zombie_until(delay > 0 and delay or settings.zombie) or 0, tube)
  if to ~= 'B' then report_end(task, 'P', before) end
end
return finish('done', pack(task), told)
