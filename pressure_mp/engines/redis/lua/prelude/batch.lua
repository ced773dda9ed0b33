-- Take the oldest items out of the list: at most `number`, and about `budget` bytes or one item.
-- Returns them, how many they are, their bytes, and the token of one whose content is in chunks: that
-- is taken alone. How large an item is can only be seen when it is out: so the first is taken alone,
-- and then twice as many with each step, if there is room for so many as large as the largest yet. The
-- items of each step are a list of their own, since to put them into one costs time.
local function take_out(data, number, budget, uploads)
  local chunked = redis.call('EXISTS', uploads) == 1
  local steps, taken, sizes, largest, step = {}, 0, 0, 1, 1
  while number > taken and step > 0 do
    -- RPOP comes first: it is allowed when the server is out of memory, and what follows it too.
    local found = redis.call('RPOP', data, math.min(step, number - taken))
    if not found then break end
    if chunked then
      local size, token = weigh(uploads, found[1])
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

-- Items were taken out by this client, and so many are left; `signs` is how many signs of space there were.
local function after_removal(signs, length, bound, not_full, consumer, client)
  redis.call('SET', consumer, client)
  if signs == 0 and (bound == 0 or length < bound) then redis.call('LPUSH', not_full, '1') end
end

-- The same, counted as consumed; returns the lists of items, the messages counted so far, that token,
-- and their bytes; or nil and the server's error.
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
  after_removal(signs, length - taken, bound, not_full, consumer, client)
  return steps, total, token, sizes
end

-- The items of all steps in one list.
local function joined(steps)
  local items, taken = {}, 0
  for _, found in ipairs(steps) do
    for i = 1, #found do items[taken + i] = found[i] end
    taken = taken + #found
  end
  return items
end

-- The oldest items, which stay where they are, and their bytes: at most `number`, and about `budget` bytes; none
-- from the first on whose content is in chunks. As in `take_out`, how large they are is seen when they are read.
local function read_oldest(data, number, budget, uploads)
  local chunked = redis.call('EXISTS', uploads) == 1
  local items, sizes, largest, step = {}, 0, 1, 1
  while number > #items and step > 0 do
    local seen = #items
    local found = redis.call('LRANGE', data, -seen - math.min(step, number - seen), -seen - 1)
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
