-- prefetch: take the oldest items before they are needed: they stay with the broker until the reader hands them out.
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_granted consumer_holder waiting producers deliveries presence returned fetched readers uploads chunks producer_free
-- args: reader call handed kept number size eof client lease
--   reader  the handle that hands them out, of the process that owns the items
--   call    the reader's number for this call, larger than those before
--   handed  how many items it ever handed out
--   kept    how many of the items that it fetched before it has not handed out: these stay, whatever the reply
--   number  how many items at most
--   size    after how many bytes to stop
--   eof     1: the end is also when every producer that registered has ended and no other process has an item in flight
-- replies: done items | large | empty | busy | late | closed | ended | missing
-- uses: role line bound count chunks batch consume deliveries delivering incarnation
-- No reader takes more than its share of the items. A call that comes twice has the same reply, since the items that it
-- fetched are kept. `large`: the next item's content is in chunks; such an item cannot be prefetched, and must be got.
-- `late`: the kept items were taken away from this reader, or the call is over.
local reader, call, handed, kept = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local client, lease, owner = ARGV[8], tonumber(ARGV[9]), owner_of(ARGV[1])
local data, waiting = KEYS[1], KEYS[11]
local records, presence, returned, fetched, readers = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local free, granted, holder, uploads = KEYS[5], KEYS[9], KEYS[10], KEYS[18]

if has_former_keys(KEYS[2], KEYS[8]) then return ADOPT_FIRST end
local till, last, _, left, is_fresh, text = read_reader(redis.call('HGET', readers, reader))
if last > call or (last == call and till == 0) then return {'late'} end
if last == call then
  local batches = read_batches(text, left)
  if not is_fresh or #batches == 0 then return {'empty'} end
  return {'done', (read_fetched(fetched, reader, batches[#batches]))}
end
local bound = read_bound(KEYS[2])
if not bound then return {'missing'} end
if kept > left then return {'late'} end
local batches, gone = read_batches(text, kept)

local state, held = read_role('consumer', '', free, granted, holder, '', lease, data)
local length = redis.call('LLEN', data)
if length == 0 and redis.call('EXISTS', uploads) == 1 then sweep_contents(uploads, KEYS[19], true) end
local over = length == 0 and end_of_stream(KEYS[3], ARGV[7], KEYS[12])
if over == 'ended' and are_elsewhere(records, readers, owner) then over = nil end
local refused = refusal(state, bound, length, over, 'now', 1, waiting, held)
if not refused and redis.call('EXISTS', uploads) == 1 then
  local _, token = size_of(uploads, redis.call('LINDEX', data, -1))
  refused = token and 'large'
end
if refused then
  if last > 0 then
    redis.call('HDEL', readers, reader) -- after this write a full server refuses no other one
    drop_fetched(fetched, reader, gone)
    till = kept > 0 and milliseconds() + lease or 0
    redis.call('HSET', readers, reader, write_reader(till, call, handed, kept, false, batches))
  end
  if refused == 'empty' then restore_sign(bound, KEYS[6], KEYS[20], state, holder, lease) end
  return {refused}
end

local next_seq = redis.call('HGET', records, 'next')
local there_until = redis.call('HGET', presence, owner)
redis.call('HLEN', fetched)
redis.call('LLEN', returned)
local now = milliseconds()
local number = math.min(tonumber(ARGV[5]), (fair_share(length, readers, reader, waiting, held, now)))
local steps, problem, _, size = remove_many(data, number, tonumber(ARGV[6]), length, bound, KEYS[6], KEYS[7], KEYS[8], KEYS[4], client, uploads)
if not steps then return problem end
local items = joined(steps)

local first = first_seq(next_seq)
local seqs, deliveries, fresh = number_items(items, returned, first)
redis.call('HSET', records, 'next', string.format('%.0f', fresh))
local slot = free_slot(batches)
for _, batch in ipairs(gone) do
  if batch.slot ~= slot or batch.apart > 0 then drop_fetched(fetched, reader, {batch}) end
end
batches[#batches + 1] = keep_fetched(fetched, reader, slot, items, size, seqs or first, deliveries)
redis.call('HSET', readers, reader, write_reader(now + lease, call, handed, kept + #items, true, batches))
renew_presence(presence, owner, there_until, now, lease)
return {'done', items}
