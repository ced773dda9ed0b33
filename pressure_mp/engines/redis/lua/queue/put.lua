-- put: add one item (specification: Put, Put (Non-Blocking)).
-- keys: data bound closed producer producer_free not_full produced_messages produced_bytes producer_granted producer_holder consumed_bytes waiting uploads consumer_free consumer_granted consumer_holder
-- args: item overfill order chunked client ticket mode turn lease conn
--   overfill  1: ignore the bound
--   order     the sort key of the item, if its discipline has these
--   chunked    1: the item is a manifest, and its content was stored
--   mode      wait | try | now
-- replies: done | full space length | lost | unordered other | busy producer state | busy consumer state length | closed | missing
-- uses: role line bound count storage chunks incarnation space looks
-- once: yes
-- durable: yes
-- After `full` in mode wait the caller is the producer, and waits for space with the role. `lost`: the
-- content was kept for its lease only, and may be gone.
local item, overfill, client, ticket, mode, turn = ARGV[1], ARGV[2], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local data, bound_key, not_full = KEYS[1], KEYS[2], KEYS[6]
local free, granted, holder = KEYS[5], KEYS[9], KEYS[10]

if ARGV[4] == '1' and has_former_keys(bound_key, KEYS[11]) then return ADOPT_FIRST end
local entry = leave_line(KEYS[12], turn, ticket)
local state, held = read_role('producer', turn, free, granted, holder, ticket, ARGV[9])
local bound = read_bound(bound_key)
if not bound then
  give_back(state, free, granted, holder)
  return {'missing'}
end
if redis.call('EXISTS', KEYS[3]) == 1 then
  give_back(state, free, granted, holder)
  return {'closed'}
end
local token
if ARGV[4] == '1' then
  token = string.sub(item, 5, 28)
  if tonumber(redis.call('ZSCORE', KEYS[13], token) or 0) <= clock() then
    give_back(state, free, granted, holder)
    return {'lost'}
  end
  keep_content(KEYS[13], token, ARGV[9])
end
local function taken()
  local caller = {client = client, ticket = ticket, mode = mode, turn = turn, lease = ARGV[9]}
  return busy('producer', state, KEYS[12], entry, caller)
end
local length = size(data)
local left = bound > 0 and bound - length - 1 or math.huge
if state == 'foreign' or yields('producer', state, mode, left, KEYS[12], held) then return taken() end

local signs = redis.call('LLEN', not_full)
local at_bound = bound > 0 and length >= bound
local overdue = is_overdue(state, holder, signs == 0 and not at_bound, ARGV[9])
local lost = overdue or (signs == 0 and is_sign_lost(bound, at_bound, KEYS[14], KEYS[15], KEYS[16]))
if overfill ~= '1' and (at_bound or (signs == 0 and not lost)) then
  if state == 'ours' then return taken() end
  -- A reader may have handed out some of the items.
  if mode == 'now' and is_read(KEYS[16], data) then
    give_back(state, free, granted, holder)
    return {'busy', 'consumer', 'reserved', length}
  end
  -- The reference's get sets the token for space even on an over-filled queue; with it, no client could wait.
  if at_bound and signs > 0 then redis.call('DEL', not_full) end
  if mode ~= 'wait' then
    give_back(state, free, granted, holder)
  else
    hold(state, free, granted, holder, ticket, client, ARGV[10], ARGV[9])
    redis.call('SET', KEYS[4], client)
  end
  return {'full', 'space', length}
end

local add, other = placing(data, length, ARGV[3])
if not add then
  give_back(state, free, granted, holder)
  return {'unordered', other}
end
local weight = size_of(KEYS[13], item)
local total, problem = count(KEYS[7], KEYS[8], weight, 1)
if not total then return problem end
add(item)
if token then redis.call('ZADD', KEYS[13], '+inf', token) end
redis.call('SET', KEYS[4], client)
if bound > 0 and length + 1 >= bound then
  redis.call('DEL', not_full)
elseif signs == 0 then
  redis.call('LPUSH', not_full, '1')
end
give_back(state, free, granted, holder)
return {'done'}
