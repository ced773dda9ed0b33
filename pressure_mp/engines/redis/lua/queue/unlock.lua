-- unlock: take a role from its holder, and repair the state that a client left that died at work.
-- keys: bound data not_full deleting producer producer_free producer_granted producer_holder consumer consumer_free consumer_granted consumer_holder
-- args: role client
--   role    producer | consumer
--   client  only if no client ever had the role: then this client counts as its last holder; else empty
-- replies: done client | missing
-- uses: bound storage space
-- once: yes
-- full: yes
-- `client` is the client that had the role, or '' when it was free.
local bound = read_bound(KEYS[1])
if not bound and redis.call('EXISTS', KEYS[4]) == 0 then return {'missing'} end
local last, free, granted, holder = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
if ARGV[1] == 'consumer' then
  last, free, granted, holder = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
end
local length, signs = size(KEYS[2]), redis.call('LLEN', KEYS[3])
if redis.call('LLEN', free) > 0 then
  -- A producer that is at work may have the token for space.
  local at_bound = bound and bound > 0 and length >= bound
  if bound and signs == 0 and redis.call('LLEN', KEYS[6]) > 0
    and is_sign_lost(bound, at_bound, KEYS[10], KEYS[11], KEYS[12]) then
    redis.call('LPUSH', KEYS[3], '1')
  end
  return {'done', ''}
end
if ARGV[2] ~= '' and redis.call('EXISTS', last, granted, holder) > 0 then return {'done', ''} end
local client = redis.call('HGET', holder, 'client') or redis.call('GET', last) or 'unknown'
redis.call('DEL', granted, holder)
redis.call('LPUSH', free, '1')
if ARGV[2] ~= '' then redis.call('SET', last, ARGV[2]) end
if signs == 0 and (not bound or bound == 0 or length < bound) then redis.call('LPUSH', KEYS[3], '1') end
return {'done', client}
