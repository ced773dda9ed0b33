-- get_many: take the oldest items (specification: Get).
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_granted consumer_holder waiting producers uploads chunks producer_free
-- args: limit size eof client ticket mode turn lease conn
--   limit     how many items at most
--   size      after how many bytes to stop
--   eof       1: when every producer that registered has ended, an empty queue is at its end
--   mode      wait | try | now
-- replies: done items... | empty item | busy consumer state | closed | ended | missing
-- uses: role line bound count chunks batch consume incarnation
-- once: yes
-- full: yes
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it.
local client, ticket, mode, turn, lease = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local data, waiting = KEYS[1], KEYS[11]
local free, granted, holder, uploads = KEYS[5], KEYS[9], KEYS[10], KEYS[13]

if ARGV[3] == '1' and has_former_keys(KEYS[2], KEYS[8]) then return ADOPT_FIRST end
local entry = leave_line(waiting, turn, ticket)
local state, held = read_role('consumer', turn, free, granted, holder, ticket, lease, data)
local bound = read_bound(KEYS[2])
local length = redis.call('LLEN', data)
if length == 0 and redis.call('EXISTS', uploads) == 1 then sweep_contents(uploads, KEYS[14], true) end
local over = length == 0 and end_of_stream(KEYS[3], ARGV[3], KEYS[12])
local refused = refusal(state, bound, length, over, mode, tonumber(ARGV[1]), waiting, held)
if refused then
  local caller = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease, conn = ARGV[9]}
  if refused == 'empty' then restore_sign(bound, KEYS[6], KEYS[15], state, holder, lease) end
  return refuse(refused, state, free, granted, holder, KEYS[4], waiting, entry, caller)
end

local number = math.min(tonumber(ARGV[1]), length)
local reply, total, token =
  remove_many(data, number, tonumber(ARGV[2]), length, bound, KEYS[6], KEYS[7], KEYS[8], KEYS[4], client, uploads)
if not reply then return total end
if token then keep_content(uploads, token, lease, true) end
give_back(state, free, granted, holder)
table.insert(reply, 1, 'done')
return reply
