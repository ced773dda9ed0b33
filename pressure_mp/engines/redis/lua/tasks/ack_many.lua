-- ack_many: acknowledge several processed tasks, each as ack does.
-- args: owner number task... result...
--   task    id and number of the take, of each
--   result  the place of a task, from 1 on, its result, and the token of the content of that, if it is in chunks
-- replies: done bells state since due problem... | lost bells | missing
-- uses: storage notices changes limits groups transitions find taker
-- once: yes
-- full: yes
-- durable: yes
-- `state` is the state of the tasks that were acknowledged, `since` the time of that, and `due` its end. A problem is the place of a task that was refused, from 1
-- on, and the reason: absent, foreign, or its state.
if not settings then return {'missing'} end
make_due_transitions()
local owner, number = ARGV[1], tonumber(ARGV[2])
local ids, seen, problems = {}, {}, {}
for i = 1, number do ids[i] = ARGV[1 + 2 * i] end
local FIRST_RESULT = 3 + 2 * number
for i = FIRST_RESULT, #ARGV - 2, 3 do
  if not has_content(ARGV[i + 2]) then return finish('lost') end
end
local state = settings.keep and 'D' or settings.zombie ~= 0 and 'Z' or 'X'
local goes, start = state == 'X', taken_prefix(owner)
local holds, timed, gone, stays, ways, finished, refused = {}, {}, {}, {}, {}, {}, {}
-- By the number of the take and of the bundle in it: the bundles of which tasks go, which tasks, and how many.
local bound = {}
local function note_leaving(bundle, call, id)
  local of_take = noted(bound, call)
  local leaving = of_take[bundle]
  if not leaving then
    leaving = {ids = {}, number = 0}
    of_take[bundle] = leaving
  end
  leaving.ids[id], leaving.number = true, leaving.number + 1
end

-- Return how many tasks from a place on are a whole bundle, in its order, without tubes, results and waiting clients:
-- these are removed without reading more of them. Nil, if they are not.
local function whole(place, part)
  local call = ARGV[2 + 2 * place]
  local bundle = bundled(taken_prefix(owner, tonumber(call)), part)
  local text = redis.call('HGET', bundles, bundle)
  if not text then return nil end
  local size, is_plain, ends, taker, at = struct.unpack(BUNDLE, text)
  local last = place + size - 1
  if is_plain == 0 or taker ~= owner or last > number or (ends > 0 and ends <= now) then return nil end
  for i = place, last do
    if ARGV[2 + 2 * i] ~= call then return nil end
  end
  if table.concat(ids, '\0', place, last) ~= string.sub(text, at) then return nil end
  finished[#finished + 1] = bundle
  for i = place, last do gone[#gone + 1], seen[ids[i]] = ids[i], 'absent' end
  ways[''] = (ways[''] or 0) + size
  return size
end

local at, part = 1, 1
while goes and at <= number do
  local size = whole(at, part)
  if not size then break end
  at, part = at + size, part + 1
  if at <= number and ARGV[2 + 2 * at] ~= ARGV[2 * at] then part = 1 end -- of another take
end

local found = at <= number and redis.call('HMGET', records, unpack(ids, at, number)) or {}
for i = at, number do
  local id = ids[i]
  local record, problem = not seen[id] and found[i - at + 1], nil
  local ends, bundle, _, call, result_ttl, tube, key, taker, inboxes, unique
  if record then
    ends, bundle, _, call, result_ttl, tube, key, taker, inboxes, unique = struct.unpack('>I8I4I4I8i8sssss', record, 34)
  end
  if record and ends > 0 and ends <= now then
    local task = find(id)
    problem = task and task.state or 'absent'
  elseif not record then
    problem = seen[id] or record_of(id) and 'R' or 'absent'
  elseif string.sub(record, 1, 1) ~= 'T' then
    problem = string.sub(record, 1, 1)
  elseif taker ~= owner or call ~= tonumber(ARGV[2 + 2 * i]) then
    problem = 'foreign'
  else
    if bundle > 0 then note_leaving(bundle, call, id) end
    if goes and result_ttl == 0 and inboxes == '' and key == '' and unique == '' then
      -- Like processed tasks, without reading the rest of the record.
      gone[#gone + 1] = id
      if bundle == 0 then
        holds[#holds + 1] = start .. string.sub(record, 50, 57) .. id
        if ends > 0 then timed[#timed + 1] = id end
      end
      ways[tube] = (ways[tube] or 0) + 1
      seen[id] = 'absent'
    else
      stays[#stays + 1] = read(id, record)
      seen[id] = goes and 'absent' or state
    end
  end
  if problem then
    refused[i] = true
    problems[#problems + 1] = i
    problems[#problems + 1] = problem
  end
end
for _, bundle in ipairs(finished) do remove_bundle(bundle) end
for call, bundles_of in pairs(bound) do
  for bundle, leaving in pairs(bundles_of) do
    split_bundle(bundled(taken_prefix(owner, call), bundle), leaving.ids, leaving.number)
  end
end
for _, task in ipairs(stays) do
  if task.bundle > 0 then task.bundle, task.is_loose = 0, true end
  end_processed(task, settings.zombie, nil)
end
for _, id in ipairs(holds) do note(removed, taken, id) end
for _, id in ipairs(timed) do note(removed, due, id) end
if #gone > 0 then
  if deleted[records] then
    for _, id in ipairs(gone) do
      note(deleted, records, id)
      note(deleted, payloads, id)
    end
  else
    deleted[records], deleted[payloads] = gone, gone
  end
  for tube, times in pairs(ways) do count('T', 'X', tube, times) end
  if redis.call('HLEN', awaited) > 0 then
    for _, id in ipairs(gone) do report_end({id = id, result_ttl = 0, inboxes = '', unique = ''}, 'P', 'T') end
  end
end
for i = FIRST_RESULT, #ARGV - 2, 3 do
  local place = tonumber(ARGV[i])
  if not refused[place] then set_result(ids[place], ARGV[i + 1], ARGV[i + 2]) end
end
local reply = finish('done', state, now, state == 'Z' and zombie_until(settings.zombie) or 0)
for i, part in ipairs(problems) do reply[5 + i] = part end
return reply
