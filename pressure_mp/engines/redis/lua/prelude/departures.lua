-- What `take` and `prefetch` share: items leave the queue, and stay with the broker.

-- Whether others have items that may come back. What is with nobody, see `requeue`, does not.
local function are_elsewhere(records, readers, owner)
  local all = redis.call('HGETALL', records)
  for i = 2, #all, 2 do
    local deliveries, _, _, other = read_delivery(all[i])
    if deliveries and deliveries > 0 and other ~= owner and other ~= '-' then return true end
  end
  all = redis.call('HGETALL', readers)
  for i = 1, #all, 2 do
    if has_left(all[i + 1]) and owner_of(all[i]) ~= owner then return true end
  end
  return false
end

-- Of `length` items, how many one consumer may fetch: with C of them that wait or consume, one
-- C-th, and one at least. `held` names who has the consumer role. The second value is the reader's
-- own record.
local function fair_share(length, readers, reader, waiting, held, now)
  local consumers, all, record = 1, redis.call('HGETALL', readers), nil
  local counted = {[handle_of(reader)] = true}
  for i = 1, #all, 2 do
    local handle = handle_of(all[i])
    if all[i] == reader then
      record = all[i + 1]
    elseif not counted[handle] and read_reader(all[i + 1]) >= now then
      consumers, counted[handle] = consumers + 1, true
    end
  end
  consumers = consumers + count_waiting('consumer', waiting, held, now)
  return math.max(math.floor(length / consumers), 1), record
end

-- The numbers of items that were taken out, and how often each was delivered before: of those that
-- were in flight once what they had, else the next ones. Both are nil when no item had any. The
-- third value is the next number from now on.
local function number_items(items, returned, next_seq)
  local fresh = next_seq
  if redis.call('LLEN', returned) == 0 then return nil, nil, fresh + #items end
  local seqs, deliveries = {}, {}
  for i, item in ipairs(items) do
    local record
    repeat
      record = redis.call('RPOP', returned)
      if record then seqs[i], deliveries[i] = read_returned(record, item) end
    until seqs[i] or not record
    if not seqs[i] then seqs[i], deliveries[i], fresh = fresh, 0, fresh + 1 end
  end
  return seqs, deliveries, fresh
end

-- The next number of a queue. Numbers begin with the time, so that those of a deleted queue never
-- come again.
local function first_seq(next_seq)
  local time = redis.call('TIME')
  return tonumber(next_seq) or time[1] * 1000000 + time[2]
end

-- Note that the owner is there, for a lease from now; `till` is what was noted last.
local function attend(presence, owner, till, now, lease)
  if (tonumber(till or '') or 0) < now + lease / 2 then
    redis.call('HSET', presence, owner, string.format('%d', now + lease))
  end
end
