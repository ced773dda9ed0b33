-- Tasks with a key. Those of one key, in one tube, are a group: of those that are ready one is in line, in
-- `ready` and `tubes`, unless as many are taken as the queue lets be; the others are `behind`. The place in
-- line has, for the number of the arrival, that of the last take of the group, if this was later: so when one
-- is taken the next goes to the end of the line.
-- `groups` has, by the tube, a zero byte and the key: that number, how many are taken, and of the one in line
-- priority, arrival and id. `behind` has the same, a zero byte, and priority, arrival and id.
local GROUP = '>I8I4'

-- Those of which something becomes, as they are then.
local touched = {}

-- `has_tasks`: some of its tasks are ready or taken, and so it is in `groups`, unless the server removed that.
local function group_of(tube, key, has_tasks)
  local name = tube .. '\0' .. key
  local group = touched[name]
  if not group then
    group = {name = name, tube = tube, last = 0, taken = 0, first = ''}
    local text = redis.call('HGET', groups, name)
    if text then
      local last, number, at = struct.unpack(GROUP, text)
      group.last, group.taken, group.first = last, number, string.sub(text, at)
    elseif has_tasks then
      error('LOST groups')
    end
    touched[name] = group
  end
  group.is_changed = true
  return group
end

-- What is in line for a group, in `ready`.
local function in_line(group)
  local arrival = struct.unpack('>I8', group.first, 9)
  return string.sub(group.first, 1, 8) .. struct.pack('>I8', math.max(arrival, group.last))
    .. string.sub(group.first, 17)
end

local function member_behind(group, place)
  return group.name .. '\0' .. place
end

-- The id in a member of `behind`.
local function id_behind(member)
  local tube_ends = string.find(member, '\0', 1, true)
  return string.sub(member, string.find(member, '\0', tube_ends + 1, true) + 17)
end

-- A task is ready: where it has its place is seen when all is written.
local function join(group, place)
  note(added, behind, '0', member_behind(group, place))
end

-- The one in line leaves it.
local function step_out(group)
  local member = in_line(group)
  note(removed, ready, member)
  if group.tube ~= '' then note(removed, tubes, group.tube .. '\0' .. member) end
  group.first = ''
end

-- A task is ready no longer.
local function quit(group, place)
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

-- All else is written: the one in line becomes the one that is to be. Returns whether somebody should look.
local function settle(group)
  local member = redis.call('ZRANGE', behind, '[' .. group.name .. '\0', '(' .. group.name .. '\1', 'BYLEX',
    'LIMIT', 0, 1)[1]
  local next_one = member and string.sub(member, #group.name + 2)
  local is_full, is_new = settings.per_key > 0 and group.taken >= settings.per_key, false
  local prefix = group.tube .. '\0'
  if group.first ~= '' and (is_full or (next_one and is_before(next_one, group.first))) then
    redis.call('ZREM', ready, in_line(group))
    if group.tube ~= '' then redis.call('ZREM', tubes, prefix .. in_line(group)) end
    redis.call('ZADD', behind, '0', member_behind(group, group.first))
    group.first = ''
  end
  if group.first == '' and next_one and not is_full then
    group.first, is_new = next_one, true
    redis.call('ZREM', behind, member)
    redis.call('ZADD', ready, '0', in_line(group))
    if group.tube ~= '' then redis.call('ZADD', tubes, '0', prefix .. in_line(group)) end
  end
  if group.first == '' and not next_one and group.taken == 0 then
    redis.call('HDEL', groups, group.name)
  else
    redis.call('HSET', groups, group.name, struct.pack(GROUP, group.last, group.taken) .. group.first)
  end
  return is_new or settings.closed
end
