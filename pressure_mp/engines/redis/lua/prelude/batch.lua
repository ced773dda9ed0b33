-- Take the oldest items out of the list: at most `number`, and about `budget` bytes or one item. Returns them, their
-- number, their bytes, and the token of an item whose content is in chunks, which is taken alone. The size of an item
-- is only known when it is out: so the first step takes one item, and each step twice as many as the step before, if
-- there is room for so many of the size of the largest yet. The items of each step are a list of their own, since
-- joining the lists costs time.
local function take_out(data, number, budget, uploads)
  local chunked = redis.call('EXISTS', uploads) == 1
  local steps, taken, sizes, largest, step = {}, 0, 0, 1, 1
  while number > taken and step > 0 do
    -- RPOP comes first: it is allowed when the server is out of memory, and so are the commands after it.
    local found = redis.call('RPOP', data, math.min(step, number - taken))
    if not found then break end
    if chunked then
      local size, token = size_of(uploads, found[1])
      if token and taken == 0 then return {found}, 1, size, token end
      if token then
        redis.call('RPUSH', data, found[1])
        break
      end
    end
    for i = 1, #found do
      local size = #found[i]
      sizes = sizes + size
      if size > largest then largest = size end
    end
    steps[#steps + 1], taken = found, taken + #found
    step = math.min(chunked and 1 or step * 2, math.floor((budget - sizes) / largest))
  end
  return steps, taken, sizes
end

-- Update the token for space when so many items are left; `signs` is how long `not_full` was before.
local function update_sign(left, signs, bound, not_full, consumer, client)
  redis.call('SET', consumer, client)
  if signs == 0 and (bound == 0 or left < bound) then redis.call('LPUSH', not_full, '1') end
end

-- Call `take_out`, and count the items as consumed; returns the lists of items, the messages counted so far, the token,
-- and the bytes; or nil and the server's error.
local function remove_many(data, number, budget, length, bound, not_full, messages, bytes, consumer, client, uploads)
  local signs = redis.call('LLEN', not_full)
  local steps, taken, sizes, token = take_out(data, number, budget, uploads)
  local total, problem = count(messages, bytes, sizes, taken)
  if not total then
    for step = #steps, 1, -1 do
      for i = #steps[step], 1, -1 do redis.call('RPUSH', data, steps[step][i]) end
    end
    return nil, problem
  end
  update_sign(length - taken, signs, bound, not_full, consumer, client)
  return steps, total, token, sizes
end

-- Join the items of all steps in one list.
local function joined(steps)
  local items, taken = {}, 0
  for _, found in ipairs(steps) do
    for i = 1, #found do items[taken + i] = found[i] end
    taken = taken + #found
  end
  return items
end

-- Read the oldest items behind the first `kept`, and leave them there: at most `number`, and about `budget` bytes, up
-- to the first one whose content is in chunks. As in `take_out`, their sizes are known when they are read. Returns
-- their bytes too.
local function read_oldest(data, kept, number, budget, uploads)
  local chunked = redis.call('EXISTS', uploads) == 1
  local items, sizes, largest, step = {}, 0, 1, 1
  while number > #items and step > 0 do
    local seen = kept + #items
    local found = redis.call('LRANGE', data, -seen - math.min(step, number - #items), -seen - 1)
    if #found == 0 then break end
    for i = #found, 1, -1 do
      local item = found[i]
      if chunked and string.byte(item) == 250 then return items, sizes end
      items[#items + 1], sizes = item, sizes + #item
      if #item > largest then largest = #item end
    end
    step = math.min(step * 4, math.floor((budget - sizes) / largest))
  end
  return items, sizes
end
