-- put: add one item (specification: Put, Put (Non-Blocking)).
-- keys: data bound closed producer producer_free not_full produced_messages produced_bytes producer_claim producer_holder done waiting
-- args: item overfill order client ticket mode turn lease conn
--   overfill  1: do not look at the bound
--   order     where the item belongs, as its discipline wants to know it
--   mode      wait | now
-- replies: done | full space length | unordered other | busy producer tickets again | closed | missing | declined
-- uses: role line bound count storage
-- once: yes
-- durable: yes
-- After `full` in mode wait the caller has the producer role and waits for space with it.
local item, overfill, client, ticket, mode, turn = ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local data, bound_key, not_full = KEYS[1], KEYS[2], KEYS[6]
local free, claim, holder = KEYS[5], KEYS[9], KEYS[10]

local entry = leave_line(KEYS[12], turn, ticket)
local state, held, ends, since = standing('producer', turn, free, claim, holder, ticket, ARGV[8])
if turn == 'woken' and not is_prompt(since) then return {'declined'} end
local bound = read_bound(bound_key)
if not bound then
  give_back(state, free, claim, holder)
  return {'missing'}
end
if redis.call('EXISTS', KEYS[3]) == 1 then
  give_back(state, free, claim, holder)
  return {'closed'}
end
local function taken()
  local who = {client = client, ticket = ticket, mode = mode, turn = turn, lease = ARGV[8]}
  return busy('producer', held, ends, KEYS[12], entry, who)
end
if state == 'foreign' or (state == 'ours' and mode == 'wait') then return taken() end

local length = size(data)
local signs = redis.call('LLEN', not_full)
local at_bound = bound > 0 and length >= bound
if overfill ~= '1' and (at_bound or signs == 0) then
  if state == 'ours' then return taken() end
  if turn == 'woken' then return {'declined'} end
  -- The reference's get sets the sign even on an over-filled queue; with it, nobody could wait.
  if at_bound and signs > 0 then redis.call('DEL', not_full) end
  if mode == 'now' then
    give_back(state, free, claim, holder)
  else
    hold(state, free, claim, holder, ticket, client, ARGV[9], ARGV[8])
  end
  return {'full', 'space', length}
end

local add, other = placing(data, length, ARGV[3])
if not add then
  give_back(state, free, claim, holder)
  return {'unordered', other}
end
local total, problem = count(KEYS[7], KEYS[8], #item, 1)
if not total then return problem end
if total == 1 then redis.call('DEL', KEYS[11]) end -- left by a queue that a foreign client deleted
add(item)
redis.call('SET', KEYS[4], client)
if bound > 0 and length + 1 >= bound then
  redis.call('DEL', not_full)
elseif signs == 0 then
  redis.call('LPUSH', not_full, '1')
end
give_back(state, free, claim, holder)
return {'done'}
