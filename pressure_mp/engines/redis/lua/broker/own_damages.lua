-- own_damages: find the damages of some queues that are not the protocol's. Changes nothing.
-- args: way...
--   way  the transitions of tasks that are counted
-- replies: done damages
-- The keys are the keys of each queue in turn, see `EXAMINED_OWN` in scripts.py. A damage is '' for none.
local PARTS = 16
-- The most tasks whose places are checked.
local SOME = 500

local function is_there(key)
  return redis.call('EXISTS', key) == 1
end

-- Whether a key is missing that a task must be in; `found` says which exist.
local function lacks(records, found)
  local some = redis.call('HRANDFIELD', records, SOME, 'WITHVALUES')
  for i = 2, #some, 2 do
    local state, ends, bundle = string.sub(some[i], 1, 1), struct.unpack('>I8I4', some[i], 34)
    local tube, key = struct.unpack('>ss', some[i], 66)
    local is_ready, is_taken = state == 'R', state == 'T'
    if (is_ready or is_taken) and key ~= '' and not found.groups then return true end
    if is_ready and key == '' and tube ~= '' and not found.tubes then return true end
    if is_taken and not (found.taken and (bundle == 0 or found.bundles)) then return true end
    if (is_taken or state == 'W') and ends > 0 and not found.due then return true end
    if not is_taken and state ~= 'W' and ends > 0 and not found.expiry then return true end
  end
  return false
end

-- Whether the numbers of ready tasks, and of buried and kept tasks, are those that are counted.
local function are_counted(counts, ready, behind, shelf)
  local there = {R = redis.call('ZCARD', ready) + redis.call('ZCARD', behind), S = redis.call('ZCARD', shelf)}
  for i, number in ipairs(redis.call('HMGET', counts, unpack(ARGV))) do
    local before, after = string.match(ARGV[i], '^(%a)-(%a)$')
    local from, to = before, after
    if from == 'B' or from == 'D' then from = 'S' end
    if to == 'B' or to == 'D' then to = 'S' end
    if there[from] then there[from] = there[from] + (number or 0) end
    if there[to] then there[to] = there[to] - (number or 0) end
  end
  return there.R == 0 and there.S == 0
end

local function of_tasks(at)
  local meta, bound, _, records, payloads, counts, ready, behind, groups, tubes, due, expiry, taken, bundles, shelf =
    unpack(KEYS, at + 1, at + PARTS - 1)
  if not is_there(bound) or not are_counted(counts, ready, behind, shelf) then return 'incomplete' end
  local has_held = redis.call('HEXISTS', meta, 'pauses') == 1 -- tasks with a tube may be in `behind`
  if is_there(behind) and not (has_held or is_there(groups)) then return 'incomplete' end
  local found = {
    groups = is_there(groups), tubes = has_held or is_there(tubes), taken = is_there(taken), due = is_there(due),
    expiry = is_there(expiry), bundles = is_there(bundles),
  }
  return lacks(records, found) and 'incomplete' or ''
end

local damages = {}
for at = 0, #KEYS - 1, PARTS do
  local meta, bound, data, records, payloads, counts = unpack(KEYS, at + 1, at + 6)
  local put = KEYS[at + PARTS]
  local discipline, damage = redis.call('HGET', meta, 'discipline'), ''
  if discipline == 'tasks' then
    damage = of_tasks(at)
  elseif discipline then
    if not is_there(bound) and is_there(data) then damage = 'no bound' end
  elseif is_there(records) or is_there(payloads) or is_there(counts) then
    damage = 'no settings'
  elseif is_there(bound) and redis.call('TYPE', put).ok == 'string' then
    -- A queue of the protocol whose name looks like this has its counters elsewhere.
    damage = 'no kind'
  end
  damages[#damages + 1] = damage
end
return {'done', damages}
