-- prefetch: take the oldest items before they are needed: they stay with the broker until the reader hands them out.
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_granted consumer_holder waiting producers deliveries presence returned fetched readers uploads chunks producer_free
-- args: reader call number size eof client ticket mode turn lease conn
--   reader  the handle that hands them out, of the process that owns the items
--   call    the reader's number for this call, which also says that all items of its last call were handed out
--   number  how many items at most
--   size    after how many bytes to stop
--   eof     1: the end is also when every producer that registered has ended and no other process has an item in flight
--   mode    wait | now
-- replies: done items | large | empty item | busy consumer state | closed | ended | missing
-- uses: role line bound count chunks batch consume deliveries delivering incarnation
-- No reader takes more than its share of the items. A call that comes twice has the same reply, since the items that it
-- fetched are kept. `large`: the next item's content is in chunks; such an item cannot be prefetched, and must be got.
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it.
local reader, call, client, ticket, mode, turn = ARGV[1], tonumber(ARGV[2]), ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local lease, owner = tonumber(ARGV[10]), owner_of(ARGV[1])
local data, waiting = KEYS[1], KEYS[11]
local records, presence, returned, fetched, readers = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local free, granted, holder, uploads = KEYS[5], KEYS[9], KEYS[10], KEYS[18]

if has_former_keys(KEYS[2], KEYS[8]) then return ADOPT_FIRST end
local _, last, _, _, apart = read_reader(redis.call('HGET', readers, reader))
if last == call then
  return {'done', (read_fetched(fetched, reader, apart))}
elseif last > call then
  return {'stale'} -- too late, over a connection that was given up: no client reads the reply
end

local entry = leave_line(waiting, turn, ticket)
local state, held = read_role('consumer', turn, free, granted, holder, ticket, lease, data)
local bound = read_bound(KEYS[2])
local length = redis.call('LLEN', data)
if length == 0 and redis.call('EXISTS', uploads) == 1 then sweep_contents(uploads, KEYS[19], true) end
local over = length == 0 and end_of_stream(KEYS[3], ARGV[5], KEYS[12])
if over == 'ended' and are_elsewhere(records, readers, owner) then over = nil end
local refused = refusal(state, bound, length, over, mode, 1, waiting, held)
if not refused and redis.call('EXISTS', uploads) == 1 then
  local _, token = size_of(uploads, redis.call('LINDEX', data, -1))
  refused = token and 'large'
end
if refused then
  drop_fetched(fetched, reader, apart)
  redis.call('HDEL', readers, reader)
end
if refused then
  local caller = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease, conn = ARGV[11]}
  if refused == 'empty' then restore_sign(bound, KEYS[6], KEYS[20], state, holder, lease) end
  return refuse(refused, state, free, granted, holder, KEYS[4], waiting, entry, caller)
end

local next_seq = redis.call('HGET', records, 'next')
local there_until = redis.call('HGET', presence, owner)
redis.call('HLEN', fetched)
redis.call('LLEN', returned)
local now = milliseconds()
local share = fair_share(length, readers, reader, waiting, held, now)
local number = math.min(tonumber(ARGV[3]), share)
local steps, problem, _, size = remove_many(data, number, tonumber(ARGV[4]), length, bound, KEYS[6], KEYS[7], KEYS[8], KEYS[4], client, uploads)
if not steps then return problem end
local items = joined(steps)

local first = first_seq(next_seq)
local seqs, deliveries, fresh = number_items(items, returned, first)
redis.call('HSET', records, 'next', string.format('%.0f', fresh))
if apart > 0 then drop_fetched(fetched, reader, apart) end
apart = keep_fetched(fetched, reader, items, size, seqs or first, deliveries)
redis.call('HSET', readers, reader, write_reader(now + lease, call, #items, 0, apart))
renew_presence(presence, owner, there_until, now, lease)
give_back(state, free, granted, holder)
return {'done', items}
