-- inbox: have an inbox, for a lease from now on, or be done with it.
-- args: inbox lease takes
--   lease  milliseconds; 0 to close it
--   takes  1: it hears also that tasks are taken
-- replies: done bells | missing
-- uses: storage hearing told groups life
if not settings then return {'missing'} end
sweep()
local name, lease = ARGV[1], tonumber(ARGV[2])
if lease == 0 then
  -- What is too much for one call goes in later ones.
  if not close_inbox(name, 1000) then end_at('i', name, '0') end
  return finish('done')
end
local box = inbox_of(name)
if not box then
  -- What is left of one of that name that was gone.
  repeat
    local is_all = close_inbox(name, 1000)
    flush()
  until is_all
  -- It does not count from the start: its client may say what it saw before it was gone.
  box = {number = now * 1000, ticket = ''}
end
box.lease, box.takes, box.is_changed = lease, tonumber(ARGV[3]), true
boxes[name] = box
end_at('i', name, now + lease)
return finish('done')
