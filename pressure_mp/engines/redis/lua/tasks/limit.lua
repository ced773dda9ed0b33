-- limit: limit how many tasks of the queue, or of a tube of it, are delivered; or remove the limit.
-- args: tube number per each
--   tube    '' for the whole queue
--   number  how many in any `per` milliseconds; 0: remove the limit
--   each    1: the limit of each key
-- replies: done bells | missing
-- uses: storage notices changes limits groups transitions ready
-- once: yes
-- full: yes
-- durable: yes
-- The tasks that were held stay so until the next takes.
if not settings then return {'missing'} end
make_due_transitions()
local tube, number, per = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
settings.pauses, settings.limits = settings.pauses or {}, settings.limits or {}
if ARGV[4] == '1' then
  limits.set_each(tube, number, per)
elseif number > 0 then
  settings.limits[tube] = {number = number, per = per}
  if settings.pauses[tube] == 'R' then settings.pauses[tube] = nil end
elseif settings.limits[tube] then
  limits.remove(tube)
  if tube ~= '' and not settings.pauses[tube] then settings.pauses[tube] = 'R' end
end
note_pauses()
wakes_all = true
return finish('done')
