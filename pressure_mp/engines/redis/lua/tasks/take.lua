-- take: take the next tasks, of one tube or of all.
-- keys: presence woken
-- args: owner call limit size ttr tube ticket entry mode turn lease alone apart
--   owner  the process that has the tasks then
--   call   the owner's number of this take
--   limit  how many tasks at most
--   size   how many bytes of data at most, unless it is one task
--   ttr    milliseconds until they are ready again; '' for the queue's own
--   entry  the entry from the last reply, when the caller calls again
--   mode   wait | now: whether the caller will wait when there is none
--   turn   first | again: whether it waited before
--   lease  milliseconds of the owner's lease from now on
--   alone  1: a task that was delivered before is taken alone; and any, with per_key or few deliveries
--   apart  1: the tasks will be settled one by one, so they are no bundle
-- replies: done bells task... | empty bells next entry | closed bells | missing
-- uses: storage notices take_one take_first changes limits groups transitions ready
-- once: yes
-- full: yes
-- A task is its id, its record and its data. `next` is in how many milliseconds to call again at the latest, 0 for at
-- once, waiting or not; '' when that does not matter.
local LOOKS = 10 -- among tasks that are due to be removed
local MOST = 100 -- tasks of a bundle
local SOME = 16 -- data that is read at a time: few calls, and little that is read in vain
if not settings then return {'missing'} end
local owner, call, limit, size, ttr, tube, ticket, entry, mode, turn, lease, alone, apart = unpack(ARGV, 1, 13)
local presence, woken = KEYS[1], KEYS[2]
call, limit, size = tonumber(call), tonumber(limit), tonumber(size)
if alone == '1' and (settings.per_key > 0 or settings.limit == 1 or settings.limit == 2) then limit = 1 end
local ends = lifetime(ttr ~= '' and tonumber(ttr) or settings.ttr)
make_due_transitions()
if turn == 'again' then
  redis.call('DEL', woken)
  if entry ~= '' then redis.call('ZREM', waiting, entry) end
end

local there_until = tonumber(redis.call('HGET', presence, owner) or '0')

-- Records end alike when tasks have the same end, deliveries, tube, report and result options. The new end of such
-- records is made once.
local stamps, moment = struct.pack('>I8I8', now, ends), string.format('%d', ends)
local named = struct.pack('>I8', call)
local kinds = setmetatable({}, {__index = function(known, rest)
  local until_then, _, deliveries, _, result_ttl, of, key, _, inboxes, unique, at =
    struct.unpack('>I8I4I4I8i8sssss', rest)
  local report = string.sub(rest, at)
  local kind = {
    until_then = until_then, is_over = until_then > 0 and until_then <= now, of = of, key = key, number = 0,
    inboxes = inboxes, deliveries = deliveries + 1, report = report,
    is_plain = of == '' and inboxes == '' and result_ttl == 0 and unique == '',
    rest = struct.pack('>I4', deliveries + 1) .. named .. struct.pack('>i8', result_ttl)  .. of .. '\0' .. key .. '\0'
      .. owner .. '\0' .. inboxes .. '\0' .. unique .. '\0' .. report,
  }
  known[rest] = kind
  return kind
end})

-- Hold the tasks of paused tubes, and the tasks that limits of tubes do not admit, in front of the next others, as many
-- as this call takes. Returns how many others are in
-- front then, and whether more are to be looked at.
local function hold_paused()
  local others, looked, some, seen = 0, 0, limit, {}
  repeat
    local members, ids = next_ready('', others, some), {}
    for i, member in ipairs(members) do ids[i] = id_in(member, '') end
    local found = #ids > 0 and redis.call('HMGET', records, unpack(ids)) or {}
    for i, member in ipairs(members) do
      local of = kinds[found[i] and string.sub(found[i], 34) or NOTHING].of
      seen[of] = (seen[of] or 0) + 1
      if is_paused(of) or (of ~= '' and seen[of] > limits.admits(of)) then
        leave_line(of, member)
        note(added, behind, '0', held(of, member))
      else
        others = others + 1
      end
    end
    flush()
    if #members < some then return math.min(others, limit), false end
    looked, some = looked + some, 100
  until others >= limit or looked >= 500
  return math.min(others, limit), true
end

-- Return the next tasks: ids, and for each its member of `ready`, the beginning of its record after the state, and its
-- kind. Removes tasks that are due to be removed, and holds tasks of paused tubes; the second value is whether another
-- look may find more. Tasks with keys end where
-- the priority changes: before that no other task of these keys is next. They also end before a task that must be taken
-- alone, unless it is the first of the call, with none chosen `before`.
local function choose(before)
  local number, is_more, ids = limit, false, {}
  if tube == '' and settings.pauses then number, is_more = hold_paused() end
  local members = number > 0 and next_ready(tube, 0, number) or {}
  local chosen = {ids = {}, places = {}, heads = {}, kinds = {}, have_keys = false}
  if #members == 0 then return chosen, is_more end
  for i, member in ipairs(members) do ids[i] = id_in(member, tube) end
  local found, at, lapsed = redis.call('HMGET', records, unpack(ids)), 0, false
  for i, id in ipairs(ids) do
    local record, place = found[i], tube == '' and members[i] or string.sub(members[i], #tube + 2)
    local kind = kinds[record and string.sub(record, 34) or NOTHING]
    if chosen.have_keys and string.sub(place, 1, 8) ~= string.sub(chosen.places[1], 1, 8) then break end
    if alone == '1' and (before or at > 0) and (kind.deliveries > 1 or (at > 0 and chosen.kinds[1].deliveries > 1)) then
      break
    end
    if kind.is_over then
      end_state(read(id, record))
      lapsed = true
    else
      if kind.key ~= '' then chosen.have_keys = true end
      at = at + 1
      chosen.ids[at], chosen.places[at], chosen.kinds[at] = id, place, kind
      chosen.heads[at] = record and string.sub(record, 2, 25)
        or string.sub(place, 1, 16) .. created(id)
    end
  end
  if lapsed then flush() end
  return chosen, true
end

-- Put held tasks of tubes that were resumed in line, more than this call takes; and of tubes with a limit as many as it
-- may take.
local function bring_back()
  local most, is_over = math.max(limit, 100), false
  local function put_in_line(name, number)
    local members = (tube == '' or tube == name) and beginning(behind, held(name, ''), 0, number) or {}
    for _, member in ipairs(members) do
      local place = string.sub(member, #name + 3)
      note(removed, behind, member)
      note(added, ready, '0', place)
      note(added, tubes, '0', tube_of(name) .. place)
    end
    return #members
  end
  for name, state in pairs(settings.pauses) do
    if state == 'R' and (tube == '' or tube == name) and put_in_line(name, most) < most then
      settings.pauses[name], is_over = nil, true
    end
  end
  for name in pairs(settings.limits or {}) do
    local number = not is_paused(name) and math.min(limits.admits(name), limit) or 0
    if name ~= '' and number > 0 then put_in_line(name, number) end
  end
  if is_over then note_pauses() end
  flush()
end

-- Read the data of the first tasks, as many as fit into the reply, but at least one if it `is_first`.
local function read_data(ids, is_first)
  local data, some = {}, nil
  for i = 1, #ids do
    local at = (i - 1) % SOME
    if at == 0 then
      some = redis.call('HMGET', payloads, unpack(ids, i, math.min(i + SOME - 1, #ids)))
    end
    local length = #(some[at + 1] or '') -- the server may have removed it
    if length > size and (i > 1 or not is_first) then break end
    size = size - length
    data[i] = some[at + 1]
  end
  return data
end

-- Note that the task in line for a key is taken: its group is the last in line from now on.
local function take_from_group(kind)
  local group = group_of(kind.of, kind.key, true)
  step_out(group)
  settings.seq = next_seq()
  group.last, group.taken = settings.seq, group.taken + 1
  limits.deliver_key(group)
  note(set, meta, 'seq', string.format('%d', settings.seq))
end

-- Take the tasks, in bundles if they are several, none has a key, and they are not to be apart. Adds id, record and data of each to `tasks`.
local function take_chosen(chosen, data, tasks)
  local start, number, ids, set_to = taken_prefix(owner, call), #data, chosen.ids, {}
  local single, stamped = number == 1 or chosen.have_keys or apart == '1', nil
  for i = 1, number do
    local id, place, kind = ids[i], chosen.places[i], chosen.kinds[i]
    if single or i % MOST == 1 then
      local part, last = single and 0 or math.floor(i / MOST) + 1, math.min(i + MOST - 1, number)
      local member = single and start .. id or bundled(start, part)
      stamped = stamps .. struct.pack('>I4', part)
      note(added, taken, '0', member)
      if ends > 0 then note(added, due, moment, single and id or '\0' .. member) end
      if not single then
        local is_plain = 1
        for k = i, last do
          if not chosen.kinds[k].is_plain then is_plain = 0 end
        end
        note(set, bundles, member,
          struct.pack(BUNDLE, last - i + 1, is_plain, ends, owner) .. table.concat(ids, '\0', i, last))
      end
    end
    local record = 'T' .. chosen.heads[i] .. stamped .. kind.rest
    set_to[2 * i - 1], set_to[2 * i] = id, record
    local at = #tasks
    tasks[at + 1], tasks[at + 2], tasks[at + 3] = id, record, data[i]
    if kind.key ~= '' then
      take_from_group(kind)
    else
      if tube ~= '' or chosen.have_keys then note(removed, ready, place) end
      if kind.of ~= '' then note(removed, tubes, tube_of(kind.of) .. place) end
    end
    if kind.until_then > 0 then note(removed, expiry, id) end
    if kind.inboxes ~= '' then tell_inboxes(kind.inboxes, 'T', id, kind.deliveries, kind.report) end
    kind.number = kind.number + 1
  end
  set[records] = set_to
  for _, kind in pairs(kinds) do
    if kind.number > 0 then
      count('R', 'T', kind.of, kind.number)
      limits.deliver(kind.of, kind.number)
    end
    kind.number = 0
  end
  if ends > 0 and ends < now + TICK then wake_waiter(tube) end
  flush()
  if tube == '' and not chosen.have_keys then redis.call('ZREMRANGEBYRANK', ready, 0, number - 1) end
end

limit = math.min(limit, limits.admits(''), limits.admits(tube))
local looks, chosen, are_there = 0, {ids = {}}, limit > 0 and not is_paused(tube)
if are_there and settings.pauses then bring_back() end
while are_there and #chosen.ids == 0 and looks < (settings.pauses and 2 or LOOKS) do
  looks = looks + 1
  chosen, are_there = choose()
end

if #chosen.ids > 0 then
  local tasks = {}
  repeat
    local data = read_data(chosen.ids, #tasks == 0)
    limit = limit - #data
    if #data > 0 then take_chosen(chosen, data, tasks) end
    -- Other tasks with keys may be next now.
    local is_more = chosen.have_keys and #data == #chosen.ids and limit > 0
      and not (alone == '1' and chosen.kinds[1].deliveries > 1)
    if is_more then chosen = choose(true) end
  until not is_more or #chosen.ids == 0
  if there_until < now + lease / 2 then
    redis.call('HSET', presence, owner, string.format('%d', now + lease))
  end
  -- Of a closed queue only takes wait whose tasks are paused or not admitted: these may have been the last of them.
  if settings.closed then wakes_all = true end
  -- A caller that was woken, or watched the time, wakes the next.
  if turn == 'again' then
    local soon = limits.next_due()
    if redis.call('ZCARD', ready) > 0 or (settings.limits and number_ready('') > 0) or (soon ~= '' and soon < TICK) then wake_waiter(tube) end
  end
  local reply = finish('done')
  reply.is_asked_for = true -- by `read_take`
  for i, part in ipairs(tasks) do reply[2 + i] = part end
  return reply
end
if are_there then return finish('empty', 0, '') end
if settings.closed and number_ready(tube) == 0 then
  wakes_any = true
  return finish('closed')
end
if tube == '' and (mode == 'wait' or not settings.limits) then redis.call('DEL', wake) end
if mode == 'wait' then
  return finish('empty', limits.wait(tube, turn == 'first'), tube ~= '' and join_line(tube, ticket) or '')
end
local soon = limits.next_due()
if turn == 'again' and (limits.end_watch(tube) or (soon ~= '' and soon < TICK)) then wake_waiter(tube) end
return finish('empty', soon, '')
