-- get: take the item whose turn it is (specification: Get, Get (Non-Blocking)).
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_claim consumer_holder waiting producers
-- args: eof client ticket mode turn lease conn
--   eof       1: when every producer that registered has ended, an empty queue is at its end
--   mode      wait | now
-- replies: done item | empty item | busy consumer tickets again | closed | ended | missing | declined
-- uses: role line bound count storage consume
-- once: yes
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it.
local client, ticket, mode, turn, lease = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local data, waiting = KEYS[1], KEYS[11]
local free, claim, holder = KEYS[5], KEYS[9], KEYS[10]

local entry = leave_line(waiting, turn, ticket)
local state, held, ends, since = standing('consumer', turn, free, claim, holder, ticket, lease)
if turn == 'woken' and not is_prompt(since) then return {'declined'} end
local bound = read_bound(KEYS[2])
local length = size(data)
local over = length == 0 and end_of_stream(KEYS[3], ARGV[1], KEYS[12])
local refused = refusal(state, bound, length, over, mode)
if refused == 'busy' then
  local who = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease}
  return busy('consumer', held, ends, waiting, entry, who)
elseif refused == 'empty' and turn == 'woken' then
  return {'declined'}
elseif refused == 'empty' and mode == 'wait' then
  hold(state, free, claim, holder, ticket, client, ARGV[7], lease)
elseif refused then
  give_back(state, free, claim, holder)
end
if refused then return {refused, refused == 'empty' and 'item' or nil} end

local item, total = remove(data, length, bound, KEYS[6], KEYS[7], KEYS[8], KEYS[4], client)
if not item then return total end
give_back(state, free, claim, holder)
return {'done', item}
