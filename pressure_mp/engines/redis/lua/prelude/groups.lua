-- Tasks with a key. The tasks of one key in one tube are a group: one of its ready tasks is in line, in `ready` and
-- `tubes`, unless as many are taken as the queue allows; the others are in `behind`. The place in line has, in place of
-- the number of the arrival, the number of the last take of the group, if this is later: so when a task is taken, the
-- next one goes to the end of the line. `groups` has, by tube, zero byte and key: that number, how many tasks are
-- taken, and priority, arrival and id of the task in line. `behind` has the same name, a zero byte, and priority,
-- arrival and id. Where the queue has limits of each key, `groups` also has the logs of their deliveries: two zero bytes,
-- and the same name. `times` says when a log is to be removed, and `due` when a limit admits a task: there it has this
-- name too.
local GROUP = '>I8I4'

-- The groups whose tasks change in this call, with their new values.
local changed_groups = {}

-- `has_tasks`: some of its tasks are ready or taken, so it is in `groups`, unless the server removed it.
local function group_of(tube, key, has_tasks)
  local name = tube .. '\0' .. key
  local group = changed_groups[name]
  if not group then
    group = {name = name, tube = tube, last = 0, taken = 0, first = ''}
    local text = redis.call('HGET', groups, name)
    if text then
      local last, number, at = struct.unpack(GROUP, text)
      group.last, group.taken, group.first = last, number, string.sub(text, at)
    elseif has_tasks then
      error('LOST groups')
    end
    changed_groups[name] = group
  end
  group.is_changed = true
  return group
end

-- Return the member of `ready` of the task of a group that is in line.
local function in_line(group)
  local arrival = struct.unpack('>I8', group.first, 9)
  return string.sub(group.first, 1, 8) .. struct.pack('>I8', math.max(arrival, group.last))
    .. string.sub(group.first, 17)
end

local function member_behind(group, place)
  return group.name .. '\0' .. place
end

-- Return the member of `behind` of a held task, from its member of `ready`.
local function held(tube, member)
  return tube .. '\0\0' .. member
end

-- Return the id in a member of `behind`.
local function id_behind(member)
  local tube_ends = string.find(member, '\0', 1, true)
  return string.sub(member, string.find(member, '\0', tube_ends + 1, true) + 17)
end

-- Add a task that is ready: its place is decided when all is written.
local function join_group(group, place)
  note(added, behind, '0', member_behind(group, place))
end

-- Take a ready task out of the line, by its member of `ready`.
local function leave_line(tube, member)
  note(removed, ready, member)
  if tube == '' then return end
  note(removed, tubes, tube .. '\0' .. member)
  if settings.pauses then note(removed, behind, held(tube, member)) end
end

-- Take the task of a group out of the line.
local function step_out(group)
  local member = in_line(group)
  leave_line(group.tube, member)
  group.first = ''
end

-- Remove a task that is ready no longer.
local function leave_group(group, place)
  if group.first == place then
    step_out(group)
  else
    note(removed, behind, member_behind(group, place))
  end
end

-- Whether a place is before another, of the same group: no two have the same priority and arrival.
local function is_before(one, other)
  for at = 1, 13, 4 do
    local mine, its = struct.unpack('>I4', one, at), struct.unpack('>I4', other, at)
    if mine ~= its then return mine < its end
  end
  return false
end

-- Return the limit of a group, with its log; nil if it has none.
function limits.of_key(group)
  local stated = settings.key_limits and (settings.key_limits[group.tube] or settings.key_limits[''])
  if not stated then return nil end
  local limit = {number = stated.number, per = stated.per}
  limits.load(limit, groups, '\0\0' .. group.name)
  return limit
end

-- Note that a task of a group is delivered.
function limits.deliver_key(group)
  local limit = limits.of_key(group)
  if not limit then return end
  note(set, groups, '\0\0' .. group.name, limits.add(limit, 1))
  end_at('g', group.name, now + limit.per + 1)
end

-- Look at a group, by its name among logs and due tasks.
function limits.open_key(name)
  local tube, key = string.match(name, '^%z%z(%Z*)%z(.*)$')
  if redis.call('HEXISTS', groups, string.sub(name, 3)) == 1 then group_of(tube, key) end
end

-- Look at the groups among due members, and return the others.
function limits.open_keys(members)
  local others = {}
  for _, member in ipairs(members) do
    if string.sub(member, 1, 2) == '\0\0' then
      limits.open_key(member)
      note(removed, due, member)
    else
      others[#others + 1] = member
    end
  end
  return others
end

-- Put the right task into the line, after all other writes. Returns whether to wake a waiter.
local function update_line(group)
  local member = redis.call('ZRANGE', behind, '[' .. group.name .. '\0', '(' .. group.name .. '\1', 'BYLEX',
    'LIMIT', 0, 1)[1]
  local next_one = member and string.sub(member, #group.name + 2)
  local used_until = limits.until_of(limits.of_key(group))
  local is_full, is_new = used_until or (settings.per_key > 0 and group.taken >= settings.per_key), false
  local prefix = group.tube .. '\0'
  if group.first ~= '' and (is_full or (next_one and is_before(next_one, group.first))) then
    redis.call('ZREM', ready, in_line(group))
    if group.tube ~= '' then redis.call('ZREM', tubes, prefix .. in_line(group)) end
    if settings.pauses then redis.call('ZREM', behind, held(group.tube, in_line(group))) end
    redis.call('ZADD', behind, '0', member_behind(group, group.first))
    next_one, group.first = next_one or group.first, ''
  end
  if group.first == '' and next_one and not is_full then
    group.first, is_new = next_one, true
    redis.call('ZREM', behind, member)
    redis.call('ZADD', ready, '0', in_line(group))
    if group.tube ~= '' then redis.call('ZADD', tubes, '0', prefix .. in_line(group)) end
  end
  if settings.key_limits then
    if used_until and next_one then
      is_new = redis.call('ZADD', due, used_until + 1, '\0\0' .. group.name) == 1
    else
      redis.call('ZREM', due, '\0\0' .. group.name)
    end
  end
  if group.first == '' and not next_one and group.taken == 0 then
    redis.call('HDEL', groups, group.name)
  else
    redis.call('HSET', groups, group.name, struct.pack(GROUP, group.last, group.taken) .. group.first)
  end
  return is_new or settings.closed
end
