-- pause: pause the queue, or a tube of it; or resume it.
-- args: tube state
--   tube   '' for the whole queue
--   state  P: it is paused; R: it is resumed
-- replies: done bells | missing
-- uses: storage notices changes limits groups transitions ready
-- once: yes
-- full: yes
-- durable: yes
-- The tasks that were held stay so until the next takes.
if not settings then return {'missing'} end
make_due_transitions()
local tube, state = ARGV[1], ARGV[2]
local was_paused = is_paused(tube)
settings.pauses = settings.pauses or {}
local is_limited = settings.limits and settings.limits[tube] -- then takes look at the tasks that are held
if state == 'P' or (tube ~= '' and settings.pauses[tube] and not is_limited) then
  settings.pauses[tube] = state
else
  settings.pauses[tube] = nil
end
note_pauses()
if was_paused and not is_paused(tube) then
  if tube == '' then wakes_all = true else wake_waiter(tube, number_ready(tube)) end
end
return finish('done')
