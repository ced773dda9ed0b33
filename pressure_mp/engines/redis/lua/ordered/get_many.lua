-- get_many: take the next items.
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_granted consumer_holder waiting producers uploads chunks producer_free
-- args: limit size eof client ticket mode turn lease conn
--   limit     how many items at most
--   size      how many bytes at most; but one item is always taken
--   eof       1: when every producer that registered has ended, an empty queue is at its end
--   mode      wait | try | now
-- replies: done items | empty item | busy consumer state | closed | ended | missing
-- uses: role line bound count storage chunks consume incarnation
-- once: yes
-- full: yes
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it. An item whose
-- content is in chunks is taken alone.
local client, ticket, mode, turn, lease = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local data, waiting = KEYS[1], KEYS[11]
local free, granted, holder, uploads = KEYS[5], KEYS[9], KEYS[10], KEYS[13]

if ARGV[3] == '1' and has_former_keys(KEYS[2], KEYS[8]) then return ADOPT_FIRST end
local entry = leave_line(waiting, turn, ticket)
local state, held = read_role('consumer', turn, free, granted, holder, ticket, lease)
local bound = read_bound(KEYS[2])
if not bound then return refuse('missing', state, free, granted, holder) end
local length = size(data)
if length == 0 and redis.call('EXISTS', uploads) == 1 then sweep_contents(uploads, KEYS[14], true) end
local over = length == 0 and end_of_stream(KEYS[3], ARGV[3], KEYS[12])
local refused = refusal(state, bound, length, over, mode, tonumber(ARGV[1]), waiting, held)
if refused then
  local caller = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease, conn = ARGV[9]}
  if refused == 'empty' then restore_sign(bound, KEYS[6], KEYS[15], state, holder, lease) end
  return refuse(refused, state, free, granted, holder, KEYS[4], waiting, entry, caller)
end

local number, budget = math.min(tonumber(ARGV[1]), length), tonumber(ARGV[2])
local signs = redis.call('LLEN', KEYS[6])
local items, undo, places, weight, token = {}, {}, {}, 0, nil
while #items < number and not token do
  -- The take comes first: it is allowed when the server is out of memory, and so are the commands after it.
  local item, put_back, place = taking(data, length - #items)()
  if not item and #items == 0 then return put_back end
  if not item then break end
  local heavy, named = size_of(uploads, item)
  if #items > 0 and (named or weight + heavy > budget) then
    put_back()
    break
  end
  local n = #items + 1
  items[n], undo[n], places[n], weight, token = item, put_back, place, weight + heavy, named
end
local total, problem = count(KEYS[7], KEYS[8], weight, #items)
if not total then
  for i = #undo, 1, -1 do undo[i]() end
  return problem
end
redis.call('SET', KEYS[4], client)
if signs == 0 and (bound == 0 or length - #items < bound) then redis.call('LPUSH', KEYS[6], '1') end
if token then keep_content(uploads, token, lease, true) end
give_back(state, free, granted, holder)
return {'done', items, place = #places > 0 and cmsgpack.pack(places) or nil}
