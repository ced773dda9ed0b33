-- requeue: requeue the items that a process has in flight at the front; items delivered too often are set aside.
-- keys: bound data not_full meta produced_messages consumed_messages consumed_bytes done finished rejected in_flight deliveries presence returned fetched readers uploads consumer_holder
-- args: owner seen call lease number seq... reader handed...
--           - : the items of ended processes that were no longer in flight then
--   seen    the end of the owner's lease, as the caller saw it; empty: whatever the lease says
--   call    only what the owner took in this call; empty: all of it
--   number  how many seqs follow; if any do, only these items, which no get returned
--   handed  how many items a reader of the owner ever handed out, as far as the caller knows
-- replies: done returned | renewed | missing
-- uses: role bound tasks deliveries chunks front returns incarnation
-- Items go back in the order of their numbers, and beyond the bound if necessary. On a queue that was shut down with
-- `immediate` they are dropped. Items that are not requeued count as done; but items that are not in flight, since they
-- were removed, do so only with the owner `-`. A reader whose items are taken away can ask for another lease how many
-- count as handed out; then the owner's lease lasts as long, and when it has ended another call removes the records.
if has_former_keys(KEYS[1], KEYS[7]) then return ADOPT_FIRST end
local bound = read_bound(KEYS[1])
if not bound then return {'missing'} end
local in_flight, records, presence, fetched, readers, uploads = KEYS[11], KEYS[12], KEYS[13], KEYS[15], KEYS[16], KEYS[17]
local owner, call, lease, number = ARGV[1], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if ARGV[2] ~= '' and redis.call('HGET', presence, owner) ~= ARGV[2] then return {'renewed'} end
local dropping = redis.call('HGET', KEYS[4], 'dropping')
check_types({KEYS[2], KEYS[3], KEYS[9], KEYS[10], KEYS[14]}, {in_flight, presence, fetched, readers}, {KEYS[5], KEYS[6], KEYS[7], KEYS[8]})
redis.call('ZCARD', uploads)

-- The items that it has in flight: to requeue, or to set aside.
local back, aside, settled, again = {}, {}, 0, 0
local wanted = {}
for _, seq in ipairs({unpack(ARGV, 6, 5 + number)}) do wanted[seq] = true end
local seen_handed = {}
for i = 6 + number, #ARGV, 2 do seen_handed[ARGV[i]] = tonumber(ARGV[i + 1]) end
local all = redis.call('HGETALL', records)
for i = 1, #all, 2 do
  local seq = all[i]
  local deliveries, limit, taken, taker, token = read_delivery(all[i + 1])
  if taker == owner and (call == '' or call == taken) and (number == 0 or wanted[seq]) then
    local item = redis.call('HGET', in_flight, seq)
    redis.call('HDEL', records, seq)
    redis.call('HDEL', in_flight, seq)
    if item and deliveries > 0 then
      if dropping then
        settled = settled + 1
        if token then redis.call('ZADD', uploads, 0, token) end
      elseif number == 0 and limit > 0 and deliveries >= limit then
        settled = settled + 1
        aside[#aside + 1] = {tonumber(seq), item}
      else
        if token then redis.call('ZADD', uploads, '+inf', token) end
        local before = number == 0 and deliveries or deliveries - 1
        back[#back + 1] = {tonumber(seq), before, item, (size_of(uploads, item))}
        if number == 0 then again = again + 1 end
      end
    elseif deliveries > 0 and (owner == '-' or dropping) then
      settled = settled + 1
      if token then redis.call('ZADD', uploads, 0, token) end
    elseif deliveries > 0 then
      redis.call('HSET', records, seq, string.format('%d %d %s - %s', deliveries, limit, taken, token or ''))
    end
  end
end
table.sort(aside, function(one, other) return one[1] < other[1] end)
for _, delivery in ipairs(aside) do redis.call('LPUSH', KEYS[10], delivery[2]) end
if call == '' and number == 0 then
  all = redis.call('HGETALL', readers)
  redis.call('HDEL', presence, owner)
  for i = 1, #all, 2 do
    local reader = all[i]
    if owner_of(reader) == owner then
      local till, last, told, left, _, batches = read_reader(all[i + 1])
      local counted = count_handed(seen_handed[reader] or 0, told, left)
      local found = take_away(fetched, reader, batches, left - (counted - told))
      redis.call('HDEL', readers, reader)
      if till > 0 and last > 0 then
        redis.call('HSET', readers, reader, write_reader(0, last, counted, 0))
        redis.call('HSET', presence, owner, string.format('%d', milliseconds() + lease))
      end
      if dropping then
        settled = settled + #found
      else
        for _, delivery in ipairs(found) do back[#back + 1] = delivery end
      end
    end
  end
end
if again > 0 then redis.call('HINCRBY', KEYS[4], 'returned', again) end
if settled > 0 then finish(settled, KEYS[5], KEYS[6], KEYS[8], KEYS[9]) end
return {'done', return_items(back, bound, KEYS[2], KEYS[3], KEYS[6], KEYS[7], KEYS[14], KEYS[18])}
