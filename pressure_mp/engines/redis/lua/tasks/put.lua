-- put: add tasks that differ only in their ids and data.
-- args: ids delay ttl priority tube ticket result_ttl inbox key unique mode place number task...
--   ids       time64 | auto_increment: how a task without an id gets an id
--   delay     milliseconds before it is ready; 0 for none
--   ttl       milliseconds for which it is ready; '' for the queue's own
--   priority  in eight bytes
--   ticket    of a client that waits until the task is processed; '' for none
--   result_ttl  milliseconds for which its result is kept; -1: with the inbox, 0: not at all
--   inbox     is told of it; '' for none
--   key       '' for none
--   unique    '' if the tasks have no unique keys; else what to do with a task whose key is held: skip | replace | error;
--             a space; and for how many milliseconds a key is kept from others
--   mode      wait | now: whether the caller will wait when there is no space
--   place     of a caller that waits: its ticket, and then the entry from the last reply; '' if it has no place in line
--   task      id and data of each; an id can be ''. After all of them, the unique key of each, '' for none
-- replies: done bells id... | exists bells id state | held bells id state | full bells queued entry | closed bells | missing
-- `done` has as many ids as there was space for. `queued` is how many tasks the bound counts.
-- uses: storage notices changes limits groups transitions find
-- once: yes
-- durable: yes
if not settings then return {'missing'} end
make_due_transitions()
if settings.closed then return finish('closed') end
local kind, delay, ttl, priority, tube, ticket, result_ttl, inbox, key, unique, mode, place, number =
  unpack(ARGV, 1, 13)
number = tonumber(number)
local seq, counter = next_seq(), settings.id
local state, ends = 'R', lifetime(ttl ~= '' and tonumber(ttl) or settings.ttl)
if delay ~= '0' then state, ends = 'W', now + tonumber(delay) end

-- For how many tasks there is space.
local space, queued, first = math.huge, nil, nil
if settings.bound > 0 then
  queued, first = putters.queued(), putters.first()
  space = mode == 'wait' and first and first ~= place and 0 or math.max(settings.bound - queued, 0)
end

-- The unique keys of the tasks that are put; the ids of the tasks that hold the keys of the others, by the places of
-- these; and the holders that change, with their new data.
local keys, instead, changed = {}, {}, {}
local total, kept_for = number, nil
if unique == '' then
  total = math.min(number, space)
  number = total
else
  local on_conflict
  on_conflict, kept_for = string.match(unique, '^(%a+) (%d+)$')
  local most = total
  number = 0
  for i = 1, total do
    local id, data, its = ARGV[12 + 2 * i], ARGV[13 + 2 * i], ARGV[13 + 2 * total + i]
    local holder = its ~= '' and who_holds(its)
    local task = holder and find(holder.id)
    holder = its ~= '' and who_holds(its) -- the task may have ended just now
    local there = task and task.state or 'X'
    if holder and on_conflict == 'error' then return finish('held', holder.id, there) end
    if i > most then -- there was no space for an earlier one
    elseif holder and not (on_conflict == 'replace' and there == 'T') then
      instead[i] = holder.id
      if on_conflict == 'replace' and (there == 'R' or there == 'W') then changed[#changed + 1] = {task, data} end
    elseif number == space then
      most = i - 1
    else
      number = number + 1
      ARGV[12 + 2 * number], ARGV[13 + 2 * number], keys[number] = id, data, its
    end
  end
  total = most
end
if total == 0 then
  if mode == 'wait' then place = putters.keep_place(place, first) end
  return finish('full', queued, place)
end
if place ~= '' then redis.call('ZREM', waiting, place) end

-- Change holders, and reply with the ids of all tasks. `ids` are the ids of the tasks that are put.
local function finish_put(ids)
  for _, one in ipairs(changed) do
    local task, data = unpack(one)
    note(set, payloads, task.id, data)
    make_ready(task, tonumber(delay), ttl ~= '' and tonumber(ttl) or nil, tube, priority)
  end
  local reply, new = finish('done'), 0
  for i = 1, total do
    if not instead[i] then new = new + 1 end
    reply[2 + i] = instead[i] or ids[new]
  end
  return reply
end

if number == 0 then return finish_put({}) end

-- Make ids, and numbers of the arrival, in sequence for tasks without ids. Returns nil when this does not suffice for
-- all of them.
local function made()
  local ids, arrivals = {}, {}
  local last = kind == 'auto_increment' and counter or seq - 1
  for i = 1, number do
    if ARGV[12 + 2 * i] ~= '' then return nil end
    ids[i], arrivals[i] = string.format('%d', last + i), seq + i - 1
  end
  if settings.named then
    for _, there in ipairs(redis.call('HMGET', payloads, unpack(ids))) do
      if there then return nil end
    end
  end
  if kind == 'auto_increment' then counter = counter + number end
  return ids, arrivals
end

-- Make them one by one; or return nil, and the id and the state of a task that exists.
local function chosen()
  local ids, arrivals, seen = {}, {}, {}
  for i = 1, number do
    local id = ARGV[12 + 2 * i]
    if id == '' then
      repeat
        if kind == 'auto_increment' then
          counter = counter + 1
          id = string.format('%d', counter)
        else
          id = string.format('%d', seq)
          if seen[id] or record_of(id) then seq = seq + 1 end
        end
      until not seen[id] and not record_of(id)
    else
      local there = seen[id] and state or record_of(id)
      if there then return nil, id, string.sub(there, 1, 1) end
    end
    seen[id] = true
    ids[i], arrivals[i] = id, seq
    seq = seq + 1
  end
  return ids, arrivals
end

local ids, arrivals = made()
local is_usual = ids and kind ~= 'auto_increment' and state == 'R' and ends == 0 and tube == '' and key == '' and unique == ''
  and priority == USUAL and is_on_time(seq) and result_ttl == '0' and inbox == ''
if not ids then
  local there
  ids, arrivals, there = chosen()
  if not ids then return finish('exists', arrivals, there) end
  note(set, meta, 'named', '1')
  settings.named = '1'
end

if settings.named and redis.call('HLEN', results) > 0 then
  for i, text in ipairs(redis.call('HMGET', results, unpack(ids))) do
    if text then forget_result(ids[i], read_kept(text)) end -- of an earlier task with that id
  end
end

local data, places = {}, {}
for i = 1, number do
  local id, field, value = ids[i], 2 * i - 1, 2 * i
  data[field], data[value] = id, ARGV[13 + value]
  places[field], places[value] = '0', priority .. struct.pack('>I8', arrivals[i]) .. id
end
set[payloads] = data
if not is_usual then
  -- The records differ in the number of the arrival only.
  local head = state .. priority
  local tail = struct.pack('>I8I8I8I4I4I8i8', now, now, ends, 0, 0, 0, tonumber(result_ttl)) .. tube
    .. '\0' .. key .. '\0\0' .. inbox .. '\0'
  local told = noted(set, records)
  for i, id in ipairs(ids) do
    told[2 * i - 1], told[2 * i] = id, head .. struct.pack('>I8', arrivals[i]) .. tail .. (keys[i] or '') .. '\0'
  end
end
if state == 'R' and key ~= '' then
  local group = group_of(tube, key)
  for i = 1, number do join_group(group, places[2 * i]) end
elseif state == 'R' then
  added[ready] = places
  if tube ~= '' then
    local tubed = noted(added, tubes)
    for i = 1, 2 * number, 2 do
      tubed[i], tubed[i + 1] = '0', tube_of(tube) .. places[i + 1]
    end
  end
end
if ends > 0 then
  local timed, moment = noted(added, state == 'R' and expiry or due), string.format('%d', ends)
  for i, id in ipairs(ids) do timed[2 * i - 1], timed[2 * i] = moment, id end
end
if (state == 'R' and key == '') or (state == 'W' and ends < now + TICK) then wake_waiter(tube, number) end
for i, its in ipairs(keys) do
  if its ~= '' then set_holder(its, {id = ids[i], ends = now + tonumber(kept_for), held = 1}) end
end
count('X', state, tube, number)
note(set, meta, 'seq', string.format('%d', arrivals[number]))
if counter ~= settings.id then note(set, meta, 'id', string.format('%d', counter)) end
if ticket ~= '' then note(set, awaited, ids[1], ticket) end
return finish_put(ids)
