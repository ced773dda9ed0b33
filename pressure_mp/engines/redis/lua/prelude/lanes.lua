-- Tasks with a key. Those of one key, in one tube, are a lane: of those that are ready one is in line, in
-- `ready` and `tubes`, unless as many are taken as the queue lets be; the others are `behind`. The place in
-- line has, for the number of the arrival, that of the last take of the lane, if this was later: so when one
-- is taken the next goes to the end of the line.
-- `lanes` has, by the tube, a zero byte and the key: that number, how many are taken, and of the one in line
-- priority, arrival and id. `behind` has the same, a zero byte, and priority, arrival and id.
local LANE = '>I8I4'

-- Those of which something becomes, as they are then.
local touched = {}

local function lane_of(tube, key)
  local name = tube .. '\0' .. key
  local lane = touched[name]
  if not lane then
    lane = {name = name, tube = tube, last = 0, taken = 0, first = ''}
    local text = redis.call('HGET', lanes, name)
    if text then
      local last, number, at = struct.unpack(LANE, text)
      lane.last, lane.taken, lane.first = last, number, string.sub(text, at)
    end
    touched[name] = lane
  end
  lane.is_changed = true
  return lane
end

-- What is in line for a lane, in `ready`.
local function in_line(lane)
  local arrival = struct.unpack('>I8', lane.first, 9)
  return string.sub(lane.first, 1, 8) .. struct.pack('>I8', math.max(arrival, lane.last))
    .. string.sub(lane.first, 17)
end

local function member_behind(lane, place)
  return lane.name .. '\0' .. place
end

-- The id in a member of `behind`.
local function id_behind(member)
  local tube_ends = string.find(member, '\0', 1, true)
  return string.sub(member, string.find(member, '\0', tube_ends + 1, true) + 17)
end

-- A task is ready: where it has its place is seen when all is written.
local function join(lane, place)
  note(added, behind, '0', member_behind(lane, place))
end

-- The one in line leaves it.
local function step_out(lane)
  local member = in_line(lane)
  note(removed, ready, member)
  if lane.tube ~= '' then note(removed, tubes, lane.tube .. '\0' .. member) end
  lane.first = ''
end

-- A task is ready no longer.
local function quit(lane, place)
  if lane.first == place then
    step_out(lane)
  else
    note(removed, behind, member_behind(lane, place))
  end
end

-- Whether a place is before another, of the same lane: no two have the same priority and arrival.
local function is_before(one, other)
  for at = 1, 13, 4 do
    local mine, its = struct.unpack('>I4', one, at), struct.unpack('>I4', other, at)
    if mine ~= its then return mine < its end
  end
  return false
end

-- All else is written: the one in line becomes the one that is to be. Returns whether somebody should look.
local function settle(lane)
  local member = redis.call('ZRANGE', behind, '[' .. lane.name .. '\0', '(' .. lane.name .. '\1', 'BYLEX',
    'LIMIT', 0, 1)[1]
  local next_one = member and string.sub(member, #lane.name + 2)
  local is_full, is_new = settings.per_key > 0 and lane.taken >= settings.per_key, false
  local prefix = lane.tube .. '\0'
  if lane.first ~= '' and (is_full or (next_one and is_before(next_one, lane.first))) then
    redis.call('ZREM', ready, in_line(lane))
    if lane.tube ~= '' then redis.call('ZREM', tubes, prefix .. in_line(lane)) end
    redis.call('ZADD', behind, '0', member_behind(lane, lane.first))
    lane.first = ''
  end
  if lane.first == '' and next_one and not is_full then
    lane.first, is_new = next_one, true
    redis.call('ZREM', behind, member)
    redis.call('ZADD', ready, '0', in_line(lane))
    if lane.tube ~= '' then redis.call('ZADD', tubes, '0', prefix .. in_line(lane)) end
  end
  if lane.first == '' and not next_one and lane.taken == 0 then
    redis.call('HDEL', lanes, lane.name)
  else
    redis.call('HSET', lanes, lane.name, struct.pack(LANE, lane.last, lane.taken) .. lane.first)
  end
  return is_new or settings.closed
end
