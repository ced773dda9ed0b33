-- requeue: give back what a process has taken that is no more.
-- keys: presence
-- args: owner seen call error limit
--   seen   the end of the owner's lease, as the caller saw it; empty: whatever the lease says
--   call   only what the owner took in this call; empty: all of it
--   error  what is kept with the tasks
--   limit  how many tasks at most
-- replies: done bells number | renewed bells | missing
-- uses: storage life
-- once: yes
-- None is left when the number is below the limit.
if not settings then return {'missing'} end
sweep()
local presence, owner, call = KEYS[1], ARGV[1], tonumber(ARGV[3])
if ARGV[2] ~= '' and redis.call('HGET', presence, owner) ~= ARGV[2] then return answer('renewed') end
local members = beginning(taken, hold(owner, call), 0, tonumber(ARGV[5]))
for i, member in ipairs(members) do members[i] = id_taken(member) end
local found = #members > 0 and redis.call('HMGET', records, unpack(members)) or {}
for i, id in ipairs(members) do
  local task = read(id, found[i])
  if task.owner == owner then give_back(task, ARGV[4], 0) end
end
if not call and #members < tonumber(ARGV[5]) then redis.call('HDEL', presence, owner) end
return answer('done', #members)
