-- The common functions of `take` and `prefetch`, whose items leave the queue, and stay with the broker.

-- Whether other owners have items that may be requeued. Items of the owner `-`, see `requeue`, may not.
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

-- Return how many of `length` items one consumer may fetch: with C clients that wait or consume, one C-th, and at least
-- one. `held` is the holder of the consumer role. The second value is the reader's own record.
local function fair_share(length, readers, reader, waiting, held, now)
  local consumers, all, record = 1, redis.call('HGETALL', readers), nil
  for i = 1, #all, 2 do
    if all[i] == reader then
      record = all[i + 1]
    elseif read_reader(all[i + 1]) >= now then
      consumers = consumers + 1
    end
  end
  consumers = consumers + count_waiting('consumer', waiting, held, now)
  return math.max(math.floor(length / consumers), 1), record
end

-- Return the numbers of taken items, and how often each was delivered before: items that were in flight before keep
-- theirs, and the others get the next numbers. Both are nil when no item was in flight before. The third value is the
-- next number from now on.
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

-- Return the next number of a queue. Numbers begin with the time, so that the numbers of a deleted queue are not used
-- again.
local function first_seq(next_seq)
  local time = redis.call('TIME')
  return tonumber(next_seq) or time[1] * 1000000 + time[2]
end

-- Renew the lease of the owner from now on; `till` is its last end.
local function renew_presence(presence, owner, till, now, lease)
  if (tonumber(till or '') or 0) < now + lease / 2 then
    redis.call('HSET', presence, owner, string.format('%d', now + lease))
  end
end
