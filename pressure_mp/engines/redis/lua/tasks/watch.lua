-- watch: tell an inbox of these tasks too; at once of tasks that are taken, or have ended.
-- args: inbox number id...
-- replies: done bells | lost bells | missing
-- uses: storage notices changes limits groups transitions find
-- once: yes
-- `lost`: the inbox is gone.
if not settings then return {'missing'} end
make_due_transitions()
local name = ARGV[1]
local box = inbox_of(name)
if not box then return finish('lost') end
end_at('i', name, now + box.lease)
for i = 1, tonumber(ARGV[2]) do
  local id = ARGV[2 + i]
  local task = find(id)
  if not task then
    local kept = kept_of(id)
    tell_inbox(name, kept and kept.outcome or 'A', id, 0, '', false)
  else
    if not string.find(' ' .. task.inboxes .. ' ', ' ' .. name .. ' ', 1, true) then
      if task.bundle > 0 then
        leave_bundle(task, {}, 0)
        flush()
      end
      task.inboxes = task.inboxes == '' and name or task.inboxes .. ' ' .. name
      write_record(task)
    end
    local event = task.state == 'B' and 'B' or (task.state == 'Z' or task.state == 'D') and 'P'
    if task.state == 'T' then event = 'T' end
    if event then tell_inbox(name, event, id, task.deliveries, task.report, false) end
  end
end
return finish('done')
