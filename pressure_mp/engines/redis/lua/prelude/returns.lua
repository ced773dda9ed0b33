-- Requeue taken items at the front.

-- Check the types of the keys before the first write.
local function check_types(lists, hashes, numbers)
  for _, key in ipairs(lists) do redis.call('LLEN', key) end
  for _, key in ipairs(hashes) do redis.call('HLEN', key) end
  for _, key in ipairs(numbers) do redis.call('GET', key) end
end

-- Take away what a reader fetched. Returns the last `left` items, as {number, deliveries, item, size}.
local function take_away(fetched, reader, batches, left)
  local back = {}
  local kept, gone = read_batches(batches, left)
  for _, batch in ipairs(kept) do left = left - batch.number end
  local skipped = -left
  for _, batch in ipairs(kept) do
    local items, seqs, deliveries = read_fetched(fetched, reader, batch)
    for i = skipped + 1, #items do
      local seq = type(seqs) == 'table' and seqs[i] or seqs + i - 1
      back[#back + 1] = {seq, deliveries and deliveries[i] or 0, items[i], #items[i]}
    end
    skipped = 0
  end
  drop_fetched(fetched, reader, gone)
  drop_fetched(fetched, reader, kept)
  return back
end

-- Requeue `back`, a table of {number, deliveries, item, size}, at the front, in the order of the numbers. Returns how
-- many.
local function return_items(back, bound, data, not_full, messages, bytes, returned, holder)
  local number, size, newest = #back, 0, 0
  if number == 0 then return 0 end
  note_in_front(holder, number)
  for _, delivery in ipairs(back) do
    size, newest = size + delivery[4], math.max(newest, delivery[1])
  end
  redis.call('INCRBY', messages, -number)
  redis.call('INCRBY', bytes, -size)

  -- Older items that were requeued before stay in front of them; items that a reader reserved stay behind them.
  local is_reserved = redis.call('HEXISTS', holder, 'call') == 1
  local record = not is_reserved and redis.call('LINDEX', returned, -1)
  while record do
    local item = redis.call('LINDEX', data, -1)
    local seq, deliveries = read_returned(record, item)
    if seq and seq > newest then break end
    redis.call('RPOP', returned)
    if seq then
      redis.call('RPOP', data)
      back[#back + 1] = {seq, deliveries, item}
    end
    record = redis.call('LINDEX', returned, -1)
  end
  table.sort(back, function(one, other) return one[1] > other[1] end)
  for _, delivery in ipairs(back) do
    redis.call('RPUSH', data, delivery[3])
    redis.call('RPUSH', returned, string.format('%.0f %d %s', delivery[1], delivery[2], redis.sha1hex(delivery[3])))
  end
  if redis.call('LLEN', not_full) > 0 and bound > 0 and redis.call('LLEN', data) >= bound then
    redis.call('DEL', not_full)
  end
  return number
end
