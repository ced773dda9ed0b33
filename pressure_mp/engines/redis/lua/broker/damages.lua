-- damages: find the damages of some queues of the protocol. Changes nothing.
-- replies: done damages
-- uses: incarnation
-- The keys are the keys of each queue in turn, see `EXAMINED` in scripts.py. A damage is '' for none.
local PARTS = 20
local damages = {}
for at = 0, #KEYS - 1, PARTS do
  local data, producer, closed, deleting, bound, consumed_bytes = unpack(KEYS, at + 1, at + 6)
  local damage = ''
  if redis.call('EXISTS', bound) == 0 then
    if redis.call('EXISTS', closed, deleting) == 0 and redis.call('EXISTS', data, producer) == 2 then damage = 'no bound' end
  elseif has_former_keys(bound, consumed_bytes) and redis.call('EXISTS', unpack(KEYS, at + 7, at + PARTS)) > 0 then
    damage = 'of another'
  end
  damages[#damages + 1] = damage
end
return {'done', damages}
