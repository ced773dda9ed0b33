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
local holds, timed, gone, stays, ways = {}, {}, {}, {}, {}
-- By the number of the take and that in it: the bundles of which some go, which, and how many.
local bound = {}
local function goes_from(bundle, call, id)
  local of_take = noted(bound, call)
  local leaving = of_take[bundle]
  if not leaving then
    leaving = {ids = {}, number = 0}
    of_take[bundle] = leaving
  end
  leaving.ids[id], leaving.number = true, leaving.number + 1
end

for i, id in ipairs(ids) do
  local record, problem = not seen[id] and found[i], nil
  local ends, bundle, _, call, tube, whose
  if record then ends, bundle, _, call, tube, whose = struct.unpack('>I8I4I4I8ss', record, 34) end
  if record and ends > 0 and ends <= now then
    local task = find(id)
    problem = task and task.state or 'absent'
  elseif not record then
    problem = seen[id] or 'absent'
  elseif string.sub(record, 1, 1) ~= 'T' then
    problem = string.sub(record, 1, 1)
  elseif whose ~= owner or call ~= tonumber(ARGV[2 + 2 * i]) then
    problem = 'foreign'
  else
    if bundle > 0 then goes_from(bundle, call, id) end
    if goes then
      -- As processed, without reading the rest of the record.
      gone[#gone + 1] = id
      if bundle == 0 then
        holds[#holds + 1] = start .. string.sub(record, 50, 57) .. id
        if ends > 0 then timed[#timed + 1] = id end
      end
      ways[tube] = (ways[tube] or 0) + 1
      seen[id] = 'absent'
    else
      stays[#stays + 1] = read(id, record)
      seen[id] = settings.keep and 'D' or 'Z'
    end
  end
  if problem then
    problems[#problems + 1] = i
    problems[#problems + 1] = problem
  end
end
for call, bundles_of in pairs(bound) do
  for bundle, leaving in pairs(bundles_of) do
    unbind(bundled(hold(owner, call), bundle), leaving.ids, leaving.number)
  end
end
for _, task in ipairs(stays) do
  if task.bundle > 0 then task.bundle, task.is_loose = 0, true end
  processed(task, settings.zombie, nil)
end
for _, id in ipairs(holds) do note(removed, taken, id) end
for _, id in ipairs(timed) do note(removed, due, id) end
if #gone > 0 then
  deleted[records], deleted[payloads] = gone, gone
  for tube, times in pairs(ways) do count('T', 'X', tube, times) end
  for _, id in ipairs(gone) do conclude(id, 'processed') end
end
local reply = answer('done')
for i, part in ipairs(problems) do reply[2 + i] = part end
return reply
