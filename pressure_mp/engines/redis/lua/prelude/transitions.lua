-- The transitions of tasks. A script writes all its changes together, see `changes`.

local function read(id, record)
  if not record then return nil end
  local state, priority, seq, created, since, ends, bundle, deliveries, call, result_ttl, tube, key,
    owner, inboxes, unique, at = struct.unpack(FORMAT, record)
  return {
    id = id, state = state, priority = priority, seq = seq, created = created, since = since,
    ends = ends, bundle = bundle, deliveries = deliveries, call = call, result_ttl = result_ttl,
    tube = tube, key = key, owner = owner, inboxes = inboxes, unique = unique, report = string.sub(record, at),
  }
end

-- Return the record of a task, nil when the task does not exist.
local function record_of(id)
  return redis.call('HGET', records, id) or redis.call('HEXISTS', payloads, id) == 1 and unrecorded(id) or nil
end

local function pack(task)
  return struct.pack(FORMAT, task.state, task.priority, task.seq, task.created, task.since, task.ends,
    task.bundle, task.deliveries, task.call, task.result_ttl, task.tube, task.key, task.owner, task.inboxes, task.unique)
    .. task.report
end

local function place(task)
  return task.priority .. struct.pack('>I8', task.seq) .. task.id
end

local function tube_of(tube)
  return tube .. '\0'
end

local function shelved(task)
  return task.state .. struct.pack('>I8I8', task.since, task.seq) .. task.id
end

-- Return the id in a member of `ready`, `tubes`, `taken` or `shelf`.
local function id_in(member, tube)
  return string.sub(member, 17 + (tube ~= '' and #tube + 1 or 0))
end

local function id_taken(member)
  return string.sub(member, 17)
end

local function itself(member)
  return member
end

-- Return the bundle that a member of `taken`, or of `due`, stands for, as its member of `taken`; nil, if it stands for
-- one task.
local function bundle_taken(member)
  return string.byte(member, 17) == 0 and member or nil
end

local function bundle_due(member)
  return string.byte(member) == 0 and string.sub(member, 2) or nil
end

-- Make the member of `taken` for a bundle of a take.
local function bundled(start, number)
  return start .. '\0' .. struct.pack('>I2', number)
end

-- Read the fields of a bundle that is in `taken`.
local function text_of(bundle)
  return redis.call('HGET', bundles, bundle) or error('LOST bundles')
end

-- Return the ids of a bundle's tasks.
local function ids_bundled(bundle)
  local text, ids = text_of(bundle), {}
  local _, _, _, _, at = struct.unpack(BUNDLE, text)
  for id in string.gmatch(string.sub(text, at), '%Z+') do ids[#ids + 1] = id end
  return ids
end

-- Sorts behind any eight bytes of a number, and the bytes behind these.
local LAST = string.rep('\255', 9)

-- Return the members of a sorted set that begin with a text, at most so many.
local function beginning(key, text, start, limit)
  return redis.call('ZRANGE', key, '[' .. text, '(' .. text .. LAST, 'BYLEX', 'LIMIT', start, limit)
end

-- Remove a bundle.
local function remove_bundle(bundle)
  note(removed, taken, bundle)
  note(removed, due, '\0' .. bundle)
  note(deleted, bundles, bundle)
end

-- Remove a bundle of which so many tasks are `leaving`; the others are kept each by itself.
local function split_bundle(bundle, leaving, number)
  remove_bundle(bundle)
  if number == struct.unpack(BUNDLE, text_of(bundle)) then return end
  local rest = {}
  for _, id in ipairs(ids_bundled(bundle)) do
    if not leaving[id] then rest[#rest + 1] = id end
  end
  for i, record in ipairs(redis.call('HMGET', records, unpack(rest))) do
    local id, ends = rest[i], struct.unpack('>I8', record, 34)
    note(added, taken, '0', string.sub(bundle, 1, 16) .. id)
    if ends > 0 then note(added, due, ends, id) end
    note(set, records, id, string.sub(record, 1, 41) .. '\0\0\0\0' .. string.sub(record, 46))
  end
end

-- Take a task out of its bundle; so many are leaving that, this one or none.
local function leave_bundle(task, leaving, number)
  if task.bundle == 0 then return end
  split_bundle(bundled(taken_prefix(task.owner, task.call), task.bundle), leaving, number)
  task.bundle = 0
end

-- Return the ids of the tasks that members stand for, up to `most` or a bundle more, and remove the bundles: the second
-- value has the tasks of these.
local function ids_of_members(members, most, bundle_of, id_of)
  local ids, loose = {}, {}
  for _, member in ipairs(members) do
    if #ids >= most then break end
    local bundle = bundle_of(member)
    if bundle then
      local bound = ids_bundled(bundle)
      for _, id in ipairs(bound) do ids[#ids + 1], loose[id] = id, true end
      remove_bundle(bundle)
    else
      ids[#ids + 1] = id_of(member)
    end
  end
  return ids, loose
end

-- The tasks of such ids.
local function read_tasks(ids, loose)
  local tasks = {}
  if #ids == 0 then return tasks end
  for i, record in ipairs(redis.call('HMGET', records, unpack(ids))) do
    local task = read(ids[i], record or unrecorded(ids[i]))
    if loose[task.id] then task.bundle, task.is_loose = 0, true end
    tasks[i] = task
  end
  return tasks
end

-- Take a task out of the sets for its state.
local function leave_sets(task)
  local state = task.state
  if state == 'R' then
    local member = place(task)
    if task.key ~= '' then
      leave_group(group_of(task.tube, task.key, true), member)
    else
      leave_line(task.tube, member)
    end
    if settings.pauses and settings.closed then wakes_all = true end -- of a paused tube it may have been the last
    if task.ends > 0 then note(removed, expiry, task.id) end
  elseif state == 'W' then
    note(removed, due, task.id)
  elseif state == 'T' and task.bundle > 0 then
    leave_bundle(task, {[task.id] = true}, 1)
  elseif state == 'T' then
    if not task.is_loose then
      note(removed, taken, taken_prefix(task.owner, task.call) .. task.id)
      if task.ends > 0 then note(removed, due, task.id) end
    end
    if task.key ~= '' then
      local group = group_of(task.tube, task.key, true)
      group.taken = group.taken - 1
    end
  elseif state == 'Z' then
    note(removed, expiry, task.id)
  else
    note(removed, shelf, shelved(task))
    if task.ends > 0 then note(removed, expiry, task.id) end
  end
end

local function wake_waiter(tube, number)
  if is_paused(tube) then return end
  local any_waits, tube_waits = false, false
  if settings.limits then any_waits, tube_waits = limits.is_watched(tube) end
  wakes_any = wakes_any or not any_waits
  if tube ~= '' and not tube_waits then woken_tubes[tube] = (woken_tubes[tube] or 0) + (number or 1) end
end

local function enter_sets(task)
  local state = task.state
  if state == 'R' then
    local member = place(task)
    if task.key ~= '' then
      join_group(group_of(task.tube, task.key), member)
    else
      note(added, ready, '0', member)
      if task.tube ~= '' then note(added, tubes, '0', tube_of(task.tube) .. member) end
      wake_waiter(task.tube)
    end
    if task.ends > 0 then note(added, expiry, task.ends, task.id) end
  elseif state == 'Z' then
    note(added, expiry, task.ends > 0 and task.ends or '+inf', task.id)
  elseif state == 'B' or state == 'D' then
    note(added, shelf, '0', shelved(task))
    if task.ends > 0 then note(added, expiry, task.ends, task.id) end
  else
    if state == 'T' then note(added, taken, '0', taken_prefix(task.owner, task.call) .. task.id) end
    if task.ends > 0 then
      note(added, due, task.ends, task.id)
      if task.ends < now + TICK then wake_waiter(task.tube) end
    end
  end
end

local function write_record(task)
  note(set, records, task.id, pack(task))
end

local function count(before, after, tube, number)
  local way = before .. '-' .. after
  tally[way] = (tally[way] or 0) + number
  if tube ~= '' then
    way = way .. ' ' .. tube
    tally[way] = (tally[way] or 0) + number
  end
end

-- Count a transition of a task that goes from one tube into another.
local function count_shift(before, after, from, to)
  if from ~= '' then tally[before .. '-S ' .. from] = (tally[before .. '-S ' .. from] or 0) + 1 end
  if to ~= '' then tally['S-' .. after .. ' ' .. to] = (tally['S-' .. after .. ' ' .. to] or 0) + 1 end
  if before ~= after then count(before, after, '', 1) end
end

-- Bring a task into another state, which ends by itself at `ends` (0: never), into a tube, and to a priority.
local function change_state(task, after, ends, tube, priority)
  local before = task.state
  leave_sets(task)
  task.priority = priority or task.priority
  if tube and tube ~= task.tube then
    count_shift(task.state, after, task.tube, tube)
    task.tube = tube
  else
    count(task.state, after, task.tube, 1)
  end
  if task.state == 'T' then task.owner, task.call = '', 0 end
  task.state, task.since, task.ends = after, now, ends
  enter_sets(task)
  write_record(task)
  if task.unique ~= '' and ENDED[before] and not ENDED[after] then hold_again(task) end
  if after == 'B' then report_end(task, 'B', before) end
end

-- Remove a task.
local function remove_task(task, outcome)
  local before = task.state
  leave_sets(task)
  count(task.state, 'X', task.tube, 1)
  task.state, task.since, task.ends = 'X', now, 0
  note(deleted, records, task.id)
  note(deleted, payloads, task.id)
  report_end(task, outcome, before)
end

-- Make a task ready, or let it wait for a delay.
local function make_ready(task, delay, ttl, tube, priority)
  if delay > 0 then
    change_state(task, 'W', now + delay, tube, priority)
  else
    change_state(task, 'R', lifetime(ttl or settings.ttl), tube, priority)
  end
end

-- Give a taken task back, or bury it if it was delivered too often.
local function give_back_task(task, report, delay, ttl, tube)
  if report ~= '' then task.report = report end
  if settings.limit > 0 and task.deliveries >= settings.limit then
    change_state(task, 'B', 0, tube)
  else
    make_ready(task, delay, ttl, tube)
  end
end

-- Return the time at which a task is removed that becomes a zombie now, 0 when it stays until it is removed by a call.
local function zombie_until(milliseconds)
  return milliseconds ~= FOR_GOOD and now + milliseconds or 0
end

-- Make the transition of a task whose time in its state is over.
local function end_state(task)
  if task.state == 'W' then
    make_ready(task, 0)
  elseif task.state == 'T' then
    give_back_task(task, 'it was not processed within its ttr', 0)
  else
    remove_task(task, task.state == 'Z' and 'P' or 'D')
  end
end

-- Read the keys that every script writes, which checks their types before the first write.
local READ = {[meta] = true, [due] = true, [expiry] = true, [times] = true}

-- Write all changes. A key of the wrong type is found before the first write, and so is a count that is no number,
-- since counts are written first.
local function flush()
  note_told()
  if next(changed_groups) then
    for _, key in ipairs({ready, tubes, behind}) do redis.call('ZCARD', key) end
  end
  for key in pairs(removed) do
    if not READ[key] and not added[key] then redis.call('ZCARD', key) end
  end
  for key in pairs(added) do
    if not READ[key] then redis.call('ZCARD', key) end
  end
  for key in pairs(set) do
    if not READ[key] then redis.call('HLEN', key) end
  end
  for key in pairs(deleted) do
    if not READ[key] then redis.call('HLEN', key) end
  end
  for way, number in pairs(tally) do redis.call('HINCRBY', counts, way, number) end
  for key, members in pairs(removed) do redis.call('ZREM', key, unpack(members)) end
  for key, members in pairs(added) do redis.call('ZADD', key, unpack(members)) end
  for key, fields in pairs(set) do redis.call('HSET', key, unpack(fields)) end
  for key, fields in pairs(deleted) do redis.call('HDEL', key, unpack(fields)) end
  removed, added, set, deleted, tally = {}, {}, {}, {}, {}
  for _, group in pairs(changed_groups) do
    if group.is_changed and update_line(group) then wake_waiter(group.tube) end
    group.is_changed = false
  end
end

-- Make the transitions that are due; at most so many, so that no client waits for long.
local function make_due_transitions()
  local left = MOST_DUE
  for _, key in ipairs({due, expiry}) do
    local members = redis.call('ZRANGE', key, '-inf', now, 'BYSCORE', 'LIMIT', 0, left)
    if #members > 0 then
      if key == due and settings.key_limits then members = limits.open_keys(members) end
      local tasks = read_tasks(ids_of_members(members, left, bundle_due, itself))
      for _, task in ipairs(tasks) do end_state(task) end
      flush()
      left = left - #tasks
      if left <= 0 then return end
    end
  end
  if remove_expired(left) then flush() end
end

-- Note a client that waits for a task of a tube, or with '' for space; returns the entry.
local function join_line(tube, ticket)
  local entry = tube_of(tube) .. struct.pack('>I8', time[1] * 1000000 + time[2]) .. ticket
  redis.call('ZADD', waiting, 0, entry)
  return entry
end

-- Return the ticket in a member of `waiting`.
local function ticket_in(entry)
  return string.sub(entry, string.find(entry, '\0', 1, true) + 9)
end

-- Select the waiters to wake: of those that wait for a task of a tube, one for each such task.
local function ring(entries)
  for _, entry in ipairs(entries) do bells[#bells + 1] = ticket_in(entry) end
  if #entries > 0 then redis.call('ZREM', waiting, unpack(entries)) end
end

local function raise_sign(signs)
  if signs == 0 then redis.call('LPUSH', wake, '1') end
end

-- The clients that wait for space, in a queue with a bound.
local putters = {}

-- Return how many tasks are ready or waiting, which the bound counts.
function putters.queued()
  local number, ways = 0, {'X-R', 'X-W', 'T-R', 'T-W', 'B-R', 'B-W', 'Z-R', 'Z-W', 'D-R', 'D-W',
    'R-X', 'W-X', 'R-T', 'R-B', 'W-B', 'R-Z', 'W-Z', 'R-D', 'W-D'}
  for i, counted in ipairs(redis.call('HMGET', counts, unpack(ways))) do
    number = number + (i <= 10 and 1 or -1) * (counted or 0)
  end
  return number
end

-- Return the entry of the first of them, nil if none waits.
function putters.first()
  return beginning(waiting, tube_of(''), 0, 1)[1]
end

-- Remove a client, which has this ticket.
function putters.remove(ticket)
  for _, entry in ipairs(beginning(waiting, tube_of(''), 0, -1)) do
    if ticket_in(entry) == ticket then redis.call('ZREM', waiting, entry) end
  end
end

-- Give a client a place in line, or keep its place; returns the entry.
function putters.keep_place(place, first)
  if place == first then redis.call('HDEL', meta, 'putter') end
  if place ~= '' and string.byte(place) ~= 0 then return join_line('', place) end
  if place ~= '' then redis.call('ZADD', waiting, 0, place) end
  return place
end

-- Wake the first client that waits for space, if there is space. It keeps its place until it calls, or for two of its
-- ticks; `meta` has the time when it was woken, and its entry.
function putters.wake_first()
  local first = putters.first()
  if not first or putters.queued() >= settings.bound then return end
  local since, woken = string.match(redis.call('HGET', meta, 'putter') or '', '^(%d+) (.*)$')
  if woken == first and math.abs(now - since) >= 2 * TICK then
    redis.call('ZREM', waiting, first)
    first = putters.first()
  end
  if not first or first == woken then return end
  redis.call('HSET', meta, 'putter', string.format('%d ', now) .. first)
  bells[#bells + 1] = ticket_in(first)
end

-- Write all changes, have a waiter woken for ready tasks, and reply. The second value has the tickets of the waiters to
-- wake one by one, if there are any.
local function finish(status, ...)
  wakes_any = wakes_any or wakes_all
  local signs = (wakes_any or next(changed_groups)) and redis.call('LLEN', wake)
  local waiters = (wakes_all or next(woken_tubes) or next(changed_groups)) and redis.call('ZCARD', waiting) or 0
  flush()
  if wakes_any then raise_sign(signs) end
  if settings.bound > 0 and not wakes_all then putters.wake_first() end
  if wakes_all then
    ring(redis.call('ZRANGE', waiting, 0, -1))
  elseif waiters > 0 then
    for tube, number in pairs(woken_tubes) do ring(beginning(waiting, tube_of(tube), 0, number)) end
  end
  return {status, #bells > 0 and bells or '', ...}
end
