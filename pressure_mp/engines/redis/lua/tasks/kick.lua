-- kick: make the oldest buried tasks ready again, or waiting.
-- args: limit delay ttl
-- replies: done bells looked number | missing
-- uses: storage notices changes limits groups transitions shelf
-- once: yes
-- full: yes
-- `looked` is how many were read: if it is below the limit, no buried task is left; of these `number` were kicked, and
-- the rest were due to be removed.
if not settings then return {'missing'} end
make_due_transitions()
local members = beginning(shelf, 'B', 0, tonumber(ARGV[1]))
for i, member in ipairs(members) do members[i] = id_shelved(member) end
local found = #members > 0 and redis.call('HMGET', records, unpack(members)) or {}
local kicked = 0
for i, id in ipairs(members) do
  local task = read(id, found[i])
  if task.ends > 0 and task.ends <= now then
    end_state(task)
  else
    task.deliveries = 0
    make_ready(task, tonumber(ARGV[2]), ARGV[3] ~= '' and tonumber(ARGV[3]) or nil)
    kicked = kicked + 1
  end
end
return finish('done', #members, kicked)
