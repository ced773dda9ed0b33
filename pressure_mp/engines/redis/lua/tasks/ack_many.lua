-- ack_many: tasks were processed, as ack says for each.
-- args: owner number task...
--   task  id and number of the take, of each
-- replies: done bells results | missing
-- uses: storage find taker
-- once: yes
-- durable: yes
-- `results` has for each task '' or why it was refused: absent, foreign, or the state it is in.
if not settings then return {'missing'} end
sweep()
local owner, number = ARGV[1], tonumber(ARGV[2])
local tasks, ids, results, seen = {unpack(ARGV, 3, 2 + 2 * number)}, {}, {}, {}
for i = 1, number do ids[i] = tasks[2 * i - 1] end
local found = redis.call('HMGET', records, unpack(ids))
local goes = not settings.keep and settings.zombie == 0
for i, id in ipairs(ids) do
  local record, result = not seen[id] and found[i], ''
  local ends, _, call, tube, whose
  if record then ends, _, call, tube, whose = struct.unpack('>I8I8I8ss', record, 34) end
  if record and ends > 0 and ends <= now then
    local task = find(id)
    result = task and task.state or 'absent'
  elseif not record then
    result = seen[id] or 'absent'
  elseif string.sub(record, 1, 1) ~= 'T' then
    result = string.sub(record, 1, 1)
  elseif whose ~= owner or call ~= tonumber(tasks[2 * i]) then
    result = 'foreign'
  elseif goes then
    -- As processed, without reading the rest of the record.
    note(removed, taken, hold(owner) .. string.sub(record, 50, 57) .. id)
    if ends > 0 then note(removed, due, id) end
    note(deleted, records, id)
    note(deleted, payloads, id)
    count('T', 'X', tube, 1)
    conclude({id = id}, 'processed')
    seen[id] = 'absent'
  else
    processed(read(id, record), settings.zombie, nil)
    seen[id] = settings.keep and 'D' or 'Z'
  end
  results[i] = result
end
return answer('done', results)
