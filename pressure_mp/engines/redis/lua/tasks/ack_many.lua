-- ack_many: tasks were processed, as ack says for each.
-- args: owner number task...
--   task  id and number of the take, of each
-- replies: done bells results | missing
-- uses: storage taker
-- once: yes
-- durable: yes
-- `results` has for each task '' or why it was refused: absent, foreign, or the state it is in.
if not settings then return {'missing'} end
sweep()
local owner, number = ARGV[1], tonumber(ARGV[2])
local tasks, ids, results, seen = {unpack(ARGV, 3, 2 + 2 * number)}, {}, {}, {}
for i = 1, number do ids[i] = tasks[2 * i - 1] end
local found = redis.call('HMGET', records, unpack(ids))
for i, id in ipairs(ids) do
  local task, result = not seen[id] and read(id, found[i]) or nil, ''
  seen[id] = true
  if task and task.ends > 0 and task.ends <= now then task = find(id) end
  if not task then
    result = 'absent'
  elseif task.state ~= 'T' then
    result = task.state
  elseif task.owner ~= owner or task.call ~= tonumber(tasks[2 * i]) then
    result = 'foreign'
  else
    processed(task, settings.zombie, nil)
  end
  results[i] = result
end
return answer('done', results)
