-- ack_many: tasks were processed, as ack says for each.
-- args: owner number task...
--   task  id and number of the take, of each
-- replies: done bells problem... | missing
-- uses: storage life find taker
-- once: yes
-- durable: yes
-- A problem is the place of a task that was refused, from 1 on, and why: absent, foreign, or the state
-- it is in.
if not settings then return {'missing'} end
sweep()
local owner, number = ARGV[1], tonumber(ARGV[2])
local ids, seen, problems = {}, {}, {}
for i = 1, number do ids[i] = ARGV[1 + 2 * i] end
local found = redis.call('HMGET', records, unpack(ids))
local goes, start = not settings.keep and settings.zombie == 0, hold(owner)
local holds, timed, gone, ways = {}, {}, {}, {}
for i, id in ipairs(ids) do
  local record, problem = not seen[id] and found[i], nil
  local ends, _, call, tube, whose
  if record then ends, _, call, tube, whose = struct.unpack('>I8I8I8ss', record, 34) end
  if record and ends > 0 and ends <= now then
    local task = find(id)
    problem = task and task.state or 'absent'
  elseif not record then
    problem = seen[id] or 'absent'
  elseif string.sub(record, 1, 1) ~= 'T' then
    problem = string.sub(record, 1, 1)
  elseif whose ~= owner or call ~= tonumber(ARGV[2 + 2 * i]) then
    problem = 'foreign'
  elseif goes then
    -- As processed, without reading the rest of the record.
    local at = #gone + 1
    gone[at], holds[at] = id, start .. string.sub(record, 50, 57) .. id
    if ends > 0 then timed[#timed + 1] = id end
    ways[tube] = (ways[tube] or 0) + 1
    seen[id] = 'absent'
  else
    processed(read(id, record), settings.zombie, nil)
    seen[id] = settings.keep and 'D' or 'Z'
  end
  if problem then
    problems[#problems + 1] = i
    problems[#problems + 1] = problem
  end
end
if #gone > 0 then
  removed[taken], deleted[records], deleted[payloads] = holds, gone, gone
  if #timed > 0 then removed[due] = timed end
  for tube, times in pairs(ways) do count('T', 'X', tube, times) end
  for _, id in ipairs(gone) do conclude(id, 'processed') end
end
local reply = answer('done')
for i, part in ipairs(problems) do reply[2 + i] = part end
return reply
