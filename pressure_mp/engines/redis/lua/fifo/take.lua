-- take: take the oldest items, which stay with the broker, in flight, until they are acknowledged.
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_granted consumer_holder waiting producers in_flight deliveries presence returned fetched readers uploads chunks producer_free
-- args: owner call limit number size reader eof client ticket mode turn lease conn
--   owner   the process that owns the items
--   call    the owner's number for this call, by which its items are found when the reply was lost
--   limit   deliveries after which an item is set aside, 0 for no limit
--   number  how many items at most
--   size    after how many bytes to stop
--   reader  a handle that takes at most its share, and counts as a consumer for a lease; else empty
--   eof     1: the end is also when every producer that registered has ended and no other process has an item in flight
--   mode    wait | try | now
-- replies: done seqs items | empty item | busy consumer state | closed | ended | missing
-- uses: role line bound count chunks batch consume deliveries delivering incarnation
-- once: yes
-- full: yes
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it.
local owner, reader, client, ticket, mode, turn = ARGV[1], ARGV[6], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local lease = tonumber(ARGV[12])
local data, waiting = KEYS[1], KEYS[11]
local in_flight, records, presence, returned = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local fetched, readers, uploads = KEYS[17], KEYS[18], KEYS[19]
local free, granted, holder = KEYS[5], KEYS[9], KEYS[10]

if has_former_keys(KEYS[2], KEYS[8]) then return ADOPT_FIRST end
local entry = leave_line(waiting, turn, ticket)
local state, held = read_role('consumer', turn, free, granted, holder, ticket, lease, data)
local bound = read_bound(KEYS[2])
local length = redis.call('LLEN', data)
if length == 0 and redis.call('EXISTS', uploads) == 1 then sweep_contents(uploads, KEYS[20], true) end
local over = length == 0 and end_of_stream(KEYS[3], ARGV[7], KEYS[12])
if over == 'ended' and are_elsewhere(records, readers, owner) then over = nil end
local most = reader == '' and tonumber(ARGV[4]) or 1
local refused = refusal(state, bound, length, over, mode, most, waiting, held)
if refused and reader ~= '' then
  local _, prefetched = read_reader(redis.call('HGET', readers, reader))
  if prefetched == 0 then redis.call('HDEL', readers, reader) end
end
if refused then
  local caller = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease, conn = ARGV[13]}
  if refused == 'empty' then restore_sign(bound, KEYS[6], KEYS[21], state, holder, lease) end
  return refuse(refused, state, free, granted, holder, KEYS[4], waiting, entry, caller)
end

local next_seq = redis.call('HGET', records, 'next')
local there_until = redis.call('HGET', presence, owner)
for _, hash in ipairs({in_flight, fetched, readers}) do redis.call('HLEN', hash) end
redis.call('LLEN', returned)
local now, number = milliseconds(), tonumber(ARGV[4])
local share, record
if reader ~= '' then
  share, record = fair_share(length, readers, reader, waiting, held, now)
  number = math.min(number, share)
end
local steps, problem, token =
  remove_many(data, number, tonumber(ARGV[5]), length, bound, KEYS[6], KEYS[7], KEYS[8], KEYS[4], client, uploads)
if not steps then return problem end
local items = joined(steps)
if token then redis.call('ZREM', uploads, token) end

local first = first_seq(next_seq)
local seqs, deliveries, fresh = number_items(items, returned, first)
redis.call('HSET', records, 'next', string.format('%.0f', fresh))
local named = {}
for i, item in ipairs(items) do
  local seq = string.format('%.0f', seqs and seqs[i] or first + i - 1)
  named[i] = seq
  redis.call('HSET', in_flight, seq, item)
  local delivered = (deliveries and deliveries[i] or 0) + 1
  local record = string.format('%d %s %s %s %s', delivered, ARGV[3], ARGV[2], owner, token or '')
  redis.call('HSET', records, seq, record)
end
renew_presence(presence, owner, there_until, now, lease)
if reader ~= '' then
  local _, prefetched = read_reader(record)
  if prefetched == 0 then redis.call('HSET', readers, reader, write_reader(now + lease, 0, 0, 0)) end
end
give_back(state, free, granted, holder)
return {'done', named, items}
