-- kick: the oldest buried tasks are ready again, or wait.
-- args: limit delay ttl
-- replies: done bells number | missing
-- uses: storage life shelf
-- once: yes
if not settings then return {'missing'} end
sweep()
local members = beginning(shelf, 'B', 0, tonumber(ARGV[1]))
for i, member in ipairs(members) do members[i] = id_shelved(member) end
local found = #members > 0 and redis.call('HMGET', records, unpack(members)) or {}
for i, id in ipairs(members) do
  local task = read(id, found[i])
  task.deliveries = 0
  revive(task, tonumber(ARGV[2]), ARGV[3] ~= '' and tonumber(ARGV[3]) or nil)
end
return answer('done', #members)
