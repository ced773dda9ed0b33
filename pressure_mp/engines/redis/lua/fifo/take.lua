-- take: take the oldest item, which stays with the broker, in flight, until it is acknowledged.
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_claim consumer_holder waiting producers flying flights presence returned uploads parts
-- args: owner call limit eof client ticket mode turn lease conn
--   owner  the process that answers for the item
--   call   the owner's number for this call: to find what it took when the reply was lost
--   limit  deliveries after which the item is set aside, 0 for no limit
--   eof    1: the end is also when every producer that registered has ended and no other process has an item in flight
--   mode   wait | now
-- replies: done seq item | empty item | busy consumer tickets again | closed | ended | missing
-- uses: role line bound count storage parts consume flights
-- once: yes
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it.
local owner, client, ticket, mode, turn = ARGV[1], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local lease = tonumber(ARGV[9])
local data, waiting = KEYS[1], KEYS[11]
local flying, flights, presence, returned = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local free, claim, holder, uploads = KEYS[5], KEYS[9], KEYS[10], KEYS[17]

local entry = leave_line(waiting, turn, ticket)
local state, held, ends = standing('consumer', turn, free, claim, holder, ticket, lease)
local bound = read_bound(KEYS[2])
local length = redis.call('LLEN', data)
if length == 0 and redis.call('EXISTS', uploads) == 1 then sweep(uploads, KEYS[18], true) end
local over = length == 0 and end_of_stream(KEYS[3], ARGV[4], KEYS[12])
if over == 'ended' then
  -- What is in flight elsewhere may come back.
  local all = redis.call('HGETALL', flights)
  for i = 2, #all, 2 do
    local deliveries, _, _, other = read_flight(all[i])
    if deliveries and deliveries > 0 and other ~= owner then over = nil end
  end
end
local refused = refusal(state, bound, length, over, mode)
if refused == 'busy' then
  local who = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease}
  return busy('consumer', held, ends, waiting, entry, who)
elseif refused == 'empty' and mode == 'wait' then
  hold(state, free, claim, holder, ticket, client, ARGV[10], lease)
elseif refused then
  give_back(state, free, claim, holder)
end
if refused then return {refused, refused == 'empty' and 'item' or nil} end

local next_seq = redis.call('HGET', flights, 'next')
local front = redis.call('LINDEX', returned, -1)
local there_until = tonumber(redis.call('HGET', presence, owner) or '0')
redis.call('HLEN', flying)
local time = redis.call('TIME')
local item, total, token =
  remove(data, length, bound, KEYS[6], KEYS[7], KEYS[8], KEYS[4], client, uploads)
if not item then return total end
if token then redis.call('ZREM', uploads, token) end
-- Left by a queue that a client of another make deleted.
if total == 1 then redis.call('DEL', flying, flights) end

local seq, deliveries
while front and not seq do
  seq, deliveries = read_returned(redis.call('RPOP', returned), item)
  front = redis.call('LINDEX', returned, -1)
end
-- Numbers begin with the time, so that those of a deleted queue never come again.
local fresh = tonumber(next_seq) or time[1] * 1000000 + time[2]
if not seq then
  seq, deliveries, fresh = fresh, 0, fresh + 1
end
seq = string.format('%.0f', seq)
redis.call('HSET', flying, seq, item)
redis.call('HSET', flights, 'next', string.format('%.0f', fresh), seq,
  string.format('%d %s %s %s %s', deliveries + 1, ARGV[3], ARGV[2], owner, token or ''))
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if there_until < now + lease / 2 then
  redis.call('HSET', presence, owner, string.format('%d', now + lease))
end
give_back(state, free, claim, holder)
return {'done', seq, item}
