-- get_many: take the oldest items, as many as are there (specification: Get).
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_claim consumer_holder waiting producers
-- args: limit size eof client ticket mode turn lease conn
--   limit     how many items at most
--   size      after how many bytes to stop
--   eof       1: when every producer that registered has ended, an empty queue is at its end
--   mode      wait | now
-- replies: done items... | empty item | busy consumer tickets again | closed | ended | missing | declined
-- uses: role line bound count consume
-- once: yes
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it.
local client, ticket, mode, turn, lease = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local data, not_full, waiting = KEYS[1], KEYS[6], KEYS[11]
local free, claim, holder = KEYS[5], KEYS[9], KEYS[10]

local entry = leave_line(waiting, turn, ticket)
local state, held, ends, since = standing('consumer', turn, free, claim, holder, ticket, lease)
if turn == 'woken' and not is_prompt(since) then return {'declined'} end
local bound = read_bound(KEYS[2])
local length = redis.call('LLEN', data)
local over = length == 0 and end_of_stream(KEYS[3], ARGV[3], KEYS[12])
local refused = refusal(state, bound, length, over, mode)
if refused == 'busy' then
  local who = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease}
  return busy('consumer', held, ends, waiting, entry, who)
elseif refused == 'empty' and turn == 'woken' then
  return {'declined'}
elseif refused == 'empty' and mode == 'wait' then
  hold(state, free, claim, holder, ticket, client, ARGV[9], lease)
elseif refused then
  give_back(state, free, claim, holder)
end
if refused then return {refused, refused == 'empty' and 'item' or nil} end

local signs = redis.call('LLEN', not_full)
-- How large an item is can only be seen when it is out: so the first is taken alone, and then
-- twice as many with each step, if there is room for so many as large as the largest yet. The
-- items of each step go out as a list of their own, since to put them into one costs time.
local reply, taken, sizes, largest, step = {'done'}, 0, 0, 1, 1
local left, budget = math.min(tonumber(ARGV[1]), length), tonumber(ARGV[2])
while left > 0 and step > 0 do
  -- RPOP comes first: it is allowed when the server is out of memory, and what follows it too.
  local found = redis.call('RPOP', data, math.min(step, left))
  for i = 1, #found do
    local size = #found[i]
    sizes = sizes + size
    if size > largest then largest = size end
  end
  reply[#reply + 1], taken, left = found, taken + #found, left - #found
  step = math.min(step * 2, math.floor((budget - sizes) / largest))
end
local total, problem = count(KEYS[7], KEYS[8], sizes, taken)
if not total then
  for step = #reply, 2, -1 do
    for i = #reply[step], 1, -1 do redis.call('RPUSH', data, reply[step][i]) end
  end
  return problem
end
redis.call('SET', KEYS[4], client)
if signs == 0 and (bound == 0 or length - taken < bound) then redis.call('LPUSH', not_full, '1') end
give_back(state, free, claim, holder)
return reply
