-- get: take the oldest item (specification: Get, Get (Non-Blocking)).
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_claim consumer_holder waiting
-- args: client ticket mode turn lease conn
--   mode      wait | now
-- replies: done item | empty item | busy consumer tickets again | closed | missing
-- uses: role line bound count
-- once: yes
-- After `empty` in mode wait the caller has the consumer role and waits for an item with it.
local client, ticket, mode, turn = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local data, not_full = KEYS[1], KEYS[6]
local free, claim, holder = KEYS[5], KEYS[9], KEYS[10]

local entry = leave_line(KEYS[11], turn, ticket)
local state, held, ends = standing('consumer', turn, free, claim, holder, ticket, ARGV[5])
local bound = read_bound(KEYS[2])
if not bound then
  give_back(state, free, claim, holder)
  return {'missing'}
end
local function taken()
  local who = {client = client, ticket = ticket, mode = mode, turn = turn, lease = ARGV[5]}
  return busy('consumer', held, ends, KEYS[11], entry, who)
end
local length = redis.call('LLEN', data)
if length == 0 then
  if redis.call('EXISTS', KEYS[3]) == 1 then
    give_back(state, free, claim, holder)
    return {'closed'}
  end
  if state == 'foreign' or state == 'ours' then return taken() end
  if mode == 'now' then
    give_back(state, free, claim, holder)
  else
    hold(state, free, claim, holder, ticket, client, ARGV[6], ARGV[5])
  end
  return {'empty', 'item'}
end
-- First come, first served; but one who cannot wait may pass a holder of ours who only waits.
if state == 'foreign' or (state == 'ours' and mode == 'wait') then return taken() end

local signs = redis.call('LLEN', not_full)
-- RPOP comes first: it is allowed when the server is out of memory, and what follows it too.
local item = redis.call('RPOP', data)
local total, problem = count(KEYS[7], KEYS[8], #item)
if not total then
  redis.call('RPUSH', data, item)
  return problem
end
redis.call('SET', KEYS[4], client)
if signs == 0 and (bound == 0 or length - 1 < bound) then redis.call('LPUSH', not_full, '1') end
give_back(state, free, claim, holder)
return {'done', item}
