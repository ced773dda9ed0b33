-- Changes are noted first, and written together, so that many tasks are few commands. Also tells waiting clients and
-- inboxes of the ends of tasks.

-- The noted changes: for each sorted set the members to remove, and the scores and members to add; the fields of
-- hashes; the counts of transitions; the waiters to wake; the tubes with waiters to wake, and how many.
local removed, added, set, deleted, tally, bells, woken_tubes = {}, {}, {}, {}, {}, {}, {}
local wakes_any = false -- whether to wake a waiter of any tube
local wakes_all = false -- whether to wake all that wait for a task of a tube, and the first of the others
local awaiting

local function noted(where, key)
  local list = where[key]
  if not list then
    list = {}
    where[key] = list
  end
  return list
end

local function note(where, key, one, other)
  local noted = noted(where, key)
  noted[#noted + 1] = one
  if other then noted[#noted + 1] = other end
end

-- The new results by task, as `results` will have them; and inboxes, false for an inbox that is gone.
local fresh, boxes = {}, {}
-- An event of a notice is the letter of an outcome, or T: taken, or A: the task does not exist.
local OUTCOME = {P = 'processed', B = 'buried', K = 'killed', D = 'dropped'}
local FEW = 32 -- chunks that are removed in one call: each takes about 20 microseconds

-- A time in `times`: of a result, an inbox, a content, a unique key that no task holds, or the log of a key with a limit
-- (r, i, c, u, g).
local function end_at(kind, name, moment)
  note(added, times, moment, kind .. name)
end

-- The unique keys that were looked at, as `uniques` will have them; false for a key that is free.
local HOLDER = '>I1I8'
local holders = {}

local function holder_of(key)
  local holder = holders[key]
  if holder == nil then
    local text = redis.call('HGET', uniques, key)
    holder = false
    if text then
      local held, ends, at = struct.unpack(HOLDER, text)
      holder = {id = string.sub(text, at), ends = ends, held = held}
    end
    holders[key] = holder
  end
  return holder
end

-- Return the task that holds a unique key, or whose time keeps it; nil if the key is free.
local function who_holds(key)
  local holder = holder_of(key)
  return holder and (holder.held == 1 or holder.ends > now) and holder or nil
end

-- Change who holds a unique key; with `holder` false the key is free.
local function set_holder(key, holder)
  local was = holders[key]
  if was and was.held == 0 then note(removed, times, 'u' .. key) end
  holders[key] = holder
  if not holder then
    note(deleted, uniques, key)
    return
  end
  note(set, uniques, key, struct.pack(HOLDER, holder.held, holder.ends) .. holder.id)
  if holder.held == 0 then end_at('u', key, holder.ends) end
end

-- Give a task that had ended its unique key again, unless another one holds it.
local function hold_again(task)
  local holder = who_holds(task.unique)
  if not holder or holder.id == task.id then
    set_holder(task.unique, {id = task.id, ends = holder and holder.ends or 0, held = 1})
  end
end

-- Take the unique key of a task that has ended from it.
local function release_key(task)
  local holder = holder_of(task.unique)
  if not holder or holder.held == 0 or holder.id ~= task.id then return end
  set_holder(task.unique, holder.ends > now and {id = task.id, ends = holder.ends, held = 0})
end

-- Remove a result.
local function forget_result(id, kept)
  note(deleted, results, id)
  note(removed, times, 'r' .. id)
  if kept.token ~= '' then end_at('c', kept.token, '0') end
end

local function inbox_of(name)
  local box = boxes[name]
  if box == nil then
    local text = redis.call('HGET', inboxes, name)
    box = text and read_inbox(name, text)
    boxes[name] = box
  end
  return box
end

-- Tell an inbox of a task, and wake its waiter; returns the number of the notice, 0 if the inbox does not exist or is
-- not told of such events. `is_alone`: the result is kept for this inbox only.
local function tell_inbox(name, event, id, deliveries, report, is_alone)
  local box = inbox_of(name)
  if not box or ((event == 'T' or event == 'G') and box.takes == 0) then return 0 end
  box.number, box.is_changed = box.number + 1, true
  note(added, notices, '0', notice_of(name, box.number, event, id, deliveries, report, is_alone))
  if box.ticket ~= '' then
    bells[#bells + 1] = box.ticket
    box.ticket = ''
  end
  return box.number
end

-- Tell all inboxes of a task; returns the number of the first one's notice.
local function tell_inboxes(names, event, id, deliveries, report, is_alone)
  local first
  for name in string.gmatch(names, '[^ ]+') do
    local number = tell_inbox(name, event, id, deliveries, report, is_alone and not first)
    first = first or number
  end
  return first or 0
end

-- The outcomes of tasks, by their states.
local ENDED = {Z = 'P', D = 'P', B = 'B'}

-- Keep the result of a task, and tell its inboxes, as it is set.
local function keep_end(task, outcome)
  local id, ttl, number, old = task.id, task.result_ttl, 0, nil
  if ttl ~= 0 then
    old = kept_of(id)
    if old and old.token ~= '' then end_at('c', old.token, '0') end
  end
  if task.inboxes ~= '' then
    number = tell_inboxes(task.inboxes, outcome, id, task.deliveries, task.report, ttl < 0)
  end
  if ttl > 0 then
    fresh[id] = {ends = now + ttl, number = 0, outcome = outcome, inbox = '', token = '', data = ''}
    end_at('r', id, now + ttl)
  elseif number > 0 and ttl < 0 then
    local inbox = string.match(task.inboxes, '[^ ]+')
    fresh[id] = {ends = 0, number = number, outcome = outcome, inbox = inbox, token = '', data = ''}
  elseif old then
    note(deleted, results, id)
  end
end

-- Tell the clients that wait for the end of the task. The removal of a task that had ended before is no news to clients
-- that asked for its result.
local function report_end(task, outcome, before)
  local id = task.id
  if task.unique ~= '' then release_key(task) end
  if not ENDED[before] or (task.state ~= 'X' and ENDED[before] ~= outcome) then keep_end(task, outcome) end
  awaiting = awaiting or redis.call('HLEN', awaited)
  if awaiting == 0 then return end
  local tickets = redis.call('HGET', awaited, id)
  if not tickets then return end
  redis.call('HDEL', awaited, id)
  local old = redis.call('HRANDFIELD', outcomes, 10, 'WITHVALUES')
  for i = 1, #old, 2 do
    if tonumber(string.match(old[i + 1], '^%d+')) + KEPT < now then redis.call('HDEL', outcomes, old[i]) end
  end
  for ticket in string.gmatch(tickets, '[^ ]+') do
    redis.call('HSET', outcomes, ticket, string.format('%d %s', now, OUTCOME[outcome]))
    bells[#bells + 1] = ticket
  end
end

-- Whether the content of a result exists, if it needs one.
local function has_content(token)
  return token == '' or tonumber(redis.call('ZSCORE', times, 'c' .. token) or '0') > now
end

-- Set the result of a task, if it has ended just now and its result is to be kept.
local function set_result(id, data, token)
  local kept = fresh[id]
  if kept then kept.data, kept.token = data, token end
  if token ~= '' then end_at('c', token, kept and '+inf' or '0') end
end

-- Add the notes about results and inboxes to the changes.
local function note_told()
  for id, kept in pairs(fresh) do
    note(set, results, id, struct.pack(KEPT_RESULT, kept.ends, kept.number, kept.outcome, kept.inbox,
      kept.token) .. kept.data)
  end
  for name, box in pairs(boxes) do
    if box and box.is_changed then
      note(set, inboxes, name, pack_inbox(box))
      box.is_changed = false
    end
  end
  fresh = {}
end

-- Remove an inbox, and up to `most` of its notices. Returns whether these were all.
local function close_inbox(name, most)
  local start = from_number(name)
  local members = redis.call('ZRANGE', notices, '[' .. start, '(' .. start .. string.rep('\255', 9), 'BYLEX',
    'LIMIT', 0, most)
  drop_seen(name, members)
  boxes[name] = false
  note(deleted, inboxes, name)
  if #members == most then return false end
  note(removed, times, 'i' .. name)
  return true
end

-- Remove some chunks of a content; returns whether these were all.
local function drop_content(token)
  local name, last, gone = string.sub(token, 1, 16), tonumber(string.sub(token, 17, 24), 16) or 0, 0
  while last > 0 and gone < FEW do
    local fields, first = {}, math.max(last - FEW, 0)
    for number = first, last - 1 do fields[#fields + 1] = string.format('%s:%d', name, number) end
    gone, last = gone + redis.call('HDEL', chunks, unpack(fields)), first
  end
  return last == 0
end

-- Remove results, inboxes, contents and unique keys whose time is over, at most so many. Returns whether there were any.
local function remove_expired(most)
  local members = redis.call('ZRANGE', times, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, member in ipairs(members) do
    local kind, name = string.sub(member, 1, 1), string.sub(member, 2)
    if kind == 'r' then
      local kept = kept_of(name)
      if kept then forget_result(name, kept) else note(removed, times, member) end
    elseif kind == 'i' then
      close_inbox(name, 1000)
    elseif kind == 'g' then
      note(deleted, groups, '\0\0' .. name)
      note(removed, times, member)
    elseif kind == 'u' then
      holder_of(name)
      set_holder(name, false)
    elseif drop_content(name) then
      note(removed, times, member)
    end
  end
  return #members > 0
end
