-- truncate: remove tasks in all states.
-- args: limit
--   limit  how many tasks at most
-- replies: done bells number | missing
-- uses: storage notices changes limits groups transitions shelf
-- once: yes
-- full: yes
-- None is left when the number is 0.
if not settings then return {'missing'} end
make_due_transitions()
local limit = tonumber(ARGV[1])
local tasks = {}
local function gather(key, bundle_of, id_of)
  if #tasks > 0 then return end
  tasks = read_tasks(ids_of_members(redis.call('ZRANGE', key, 0, limit - 1), limit, bundle_of, id_of))
end
local function no_bundle() end
gather(ready, no_bundle, function(member) return id_in(member, '') end)
gather(behind, no_bundle, id_behind)
gather(due, bundle_due, itself)
gather(expiry, no_bundle, itself)
gather(taken, bundle_taken, id_taken)
gather(shelf, no_bundle, id_shelved)
for _, task in ipairs(tasks) do remove_task(task, 'K') end
return finish('done', #tasks)
