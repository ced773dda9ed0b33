-- inbox: open an inbox for a lease from now on, or close it.
-- args: inbox lease takes
--   lease  milliseconds; 0 to close it
--   takes  1: it is also told that tasks are taken
-- replies: done bells | missing
-- uses: storage notices changes limits groups transitions
if not settings then return {'missing'} end
make_due_transitions()
local name, lease = ARGV[1], tonumber(ARGV[2])
if lease == 0 then
  -- Later calls remove the rest.
  if not close_inbox(name, 1000) then end_at('i', name, '0') end
  return finish('done')
end
local box = inbox_of(name)
if not box then
  -- The rest of an earlier inbox of that name.
  repeat
    local is_all = close_inbox(name, 1000)
    flush()
  until is_all
  -- It does not count from 1 again: its client may name notices that it saw before.
  box = {number = now * 1000, ticket = ''}
end
box.lease, box.takes, box.is_changed = lease, tonumber(ARGV[3]), true
boxes[name] = box
end_at('i', name, now + lease)
return finish('done')
