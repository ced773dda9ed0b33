-- get: take the next item (specification: Get, Get (Non-Blocking)).
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_granted consumer_holder waiting producers uploads chunks producer_free
-- args: eof client ticket mode turn lease conn
--   eof       1: when every producer that registered has ended, an empty queue is at its end
--   mode      wait | try | now
-- replies: done item | empty item | busy consumer state | closed | ended | missing
-- uses: role line bound count storage chunks consume incarnation
-- once: yes
-- full: yes
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it.
local client, ticket, mode, turn, lease = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local data, waiting = KEYS[1], KEYS[11]
local free, granted, holder, uploads = KEYS[5], KEYS[9], KEYS[10], KEYS[13]

if ARGV[1] == '1' and has_former_keys(KEYS[2], KEYS[8]) then return ADOPT_FIRST end
local entry = leave_line(waiting, turn, ticket)
local state, held = read_role('consumer', turn, free, granted, holder, ticket, lease, data)
local bound = read_bound(KEYS[2])
if not bound then return refuse('missing', state, free, granted, holder) end
local length = size(data)
if length == 0 and redis.call('EXISTS', uploads) == 1 then sweep_contents(uploads, KEYS[14], true) end
local over = length == 0 and end_of_stream(KEYS[3], ARGV[1], KEYS[12])
local refused = refusal(state, bound, length, over, mode, 1, waiting, held)
if refused then
  local caller = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease, conn = ARGV[7]}
  if refused == 'empty' then restore_sign(bound, KEYS[6], KEYS[15], state, holder, lease) end
  return refuse(refused, state, free, granted, holder, KEYS[4], waiting, entry, caller)
end

local item, total, token, place =
  remove(data, length, bound, KEYS[6], KEYS[7], KEYS[8], KEYS[4], client, uploads)
if not item then return total end
if token then keep_content(uploads, token, lease, true) end
give_back(state, free, granted, holder)
return {'done', item, place = place}
