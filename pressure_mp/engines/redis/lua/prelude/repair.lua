-- Repairs a queue of tasks that lost keys. The data and the record of each task have all that the other keys have,
-- except the counts of earlier transitions.

-- How many tasks are read together.
local AT_ONCE = 500

-- Call `act` for each task, with its id and its record, if it has one.
local function each_task(act)
  local ids = redis.call('HKEYS', payloads)
  for _, id in ipairs(redis.call('HKEYS', records)) do
    if redis.call('HEXISTS', payloads, id) == 0 then ids[#ids + 1] = id end
  end
  for first = 1, #ids, AT_ONCE do
    local last = math.min(first + AT_ONCE - 1, #ids)
    for i, record in ipairs(redis.call('HMGET', records, unpack(ids, first, last))) do
      act(ids[first + i - 1], record)
    end
  end
end

-- Add a task to the sets for its state.
local function put_in_place(task)
  local is_bundled = task.bundle > 0
  task.bundle = 0
  enter_sets(task)
  if task.unique ~= '' and not ENDED[task.state] and not holder_of(task.unique) then hold_again(task) end
  if task.state == 'T' and task.key ~= '' then
    local group = group_of(task.tube, task.key)
    group.taken = group.taken + 1
  end
  if is_bundled then write_record(task) end
  count('X', task.state, task.tube, 1)
end

-- Make all sets and counts again.
local function make_again()
  redis.call('DEL', ready, tubes, behind, groups, due, expiry, taken, bundles, shelf, counts)
  local number = 0
  each_task(function(id, record)
    local task = read(id, record or unrecorded(id))
    if not record and not tonumber(id) then
      -- Its record is lost, and so is the time of its put.
      settings.seq = next_seq()
      task.seq, task.created, task.since = settings.seq, now, now
      write_record(task)
    end
    put_in_place(task)
    number = number + 1
    if number % AT_ONCE == 0 then flush() end
  end)
  flush()
  raise_sign(redis.call('LLEN', wake))
end

-- Return the largest number that is a task's id and not a time.
local function last_id()
  local last = 0
  each_task(function(id)
    local number = tonumber(id)
    if number and number > last and number < 1000000000000000 then last = number end
  end)
  return string.format('%d', last)
end
