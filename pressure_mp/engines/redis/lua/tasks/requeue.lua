-- requeue: requeue the tasks of a process that has ended.
-- keys: presence workers
-- args: owner seen call report limit
--   seen   the end of the owner's lease, as the caller saw it; empty: whatever the lease says
--   call   only the tasks of this take, which counts as no delivery; empty: all of them
--   report  the report on the tasks
--   limit  how many tasks at most
-- replies: done bells number | renewed bells | missing
-- uses: storage notices changes limits groups transitions
-- once: yes
-- full: yes
-- None is left when the number is below the limit.
if not settings then return {'missing'} end
make_due_transitions()
local presence, workers, owner, call = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[3])
local till, has_workers = redis.call('HGET', presence, owner), redis.call('HEXISTS', workers, owner) == 1
if ARGV[2] ~= '' and till ~= ARGV[2] then return finish('renewed') end
local limit = tonumber(ARGV[5])
local members = beginning(taken, taken_prefix(owner, call), 0, limit)
local ids, loose = ids_of_members(members, limit, bundle_taken, id_taken)
local number = 0
for _, task in ipairs(read_tasks(ids, loose)) do
  if task.owner == owner then
    if call then task.deliveries = task.deliveries - 1 end
    give_back_task(task, ARGV[4], 0)
    number = number + 1
  elseif task.is_loose then -- of an owner whose name ends alike
    enter_sets(task)
    write_record(task)
  end
end
if not call and #ids < limit then
  redis.call('HDEL', presence, owner)
  if has_workers then redis.call('HDEL', workers, owner) end
end
return finish('done', number)
