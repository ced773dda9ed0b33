-- list: list the tasks of one state, in their order of service.
-- args: state tube start limit
--   tube   '' for all tubes
--   start  how many places of the order to skip
-- replies: done bells looked ids records payloads | missing
-- uses: storage notices changes limits groups transitions ready shelf
-- `looked` is how many places were read, not all of which are of the state and the tube; no task is left when it is 0.
-- A bundle is one place.
if not settings then return {'missing'} end
make_due_transitions()
local state, tube, start, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local places, id_of, bundle_of = nil, itself, function() end
if state == 'R' then
  places = next_ready(tube, start, limit)
  for i, member in ipairs(places) do places[i] = id_in(member, tube) end
  if #places < limit then
    local at = math.max(start - number_in_line(tube), 0)
    for _, member in ipairs(next_behind(tube, at, limit - #places)) do
      places[#places + 1] = id_behind(member)
    end
  end
elseif state == 'T' then
  places, id_of, bundle_of = redis.call('ZRANGE', taken, start, start + limit - 1), id_taken, bundle_taken
elseif state == 'B' or state == 'D' then
  places, id_of = beginning(shelf, state, start, limit), id_shelved
elseif state == 'W' then
  places = redis.call('ZRANGE', due, start, start + limit - 1)
else
  places = redis.call('ZRANGE', expiry, start, start + limit - 1)
end
local ids, told, data = {}, {}, {}
local function look(id)
  local task = read(id, record_of(id))
  if task and task.state == state and (tube == '' or task.tube == tube) then
    ids[#ids + 1], told[#told + 1] = id, pack(task)
    data[#data + 1] = redis.call('HGET', payloads, id)
  end
end
for _, member in ipairs(places) do
  local bundle = bundle_of(member)
  if bundle then
    for _, id in ipairs(ids_bundled(bundle)) do look(id) end
  else
    look(id_of(member))
  end
end
return finish('done', #places, ids, told, data)
