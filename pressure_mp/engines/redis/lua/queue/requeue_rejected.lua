-- requeue_rejected: put an item again that was set aside, behind the queued items.
-- keys: bound data closed not_full produced_messages produced_bytes rejected uploads chunks consumed_bytes
-- args: item
-- replies: done | absent | closed | missing
-- uses: bound count storage incarnation
-- once: yes
-- durable: yes
-- Beyond the bound if necessary. Only for disciplines without sort keys.
if has_former_keys(KEYS[1], KEYS[10]) then return ADOPT_FIRST end
local item, bound = ARGV[1], read_bound(KEYS[1])
if not bound then return {'missing'} end
if redis.call('EXISTS', KEYS[3]) == 1 then return {'closed'} end
local length, signs = size(KEYS[2]), redis.call('LLEN', KEYS[4])
redis.call('ZCARD', KEYS[8])
local add, token, weight = placing(KEYS[2], length, ''), nil, #item
if string.byte(item) == 250 and string.sub(item, 2, 4) == 'mp1' then
  token = string.sub(item, 5, 28)
  weight = tonumber(string.sub(item, 29, 44), 16)
  -- An item with the form of a manifest, but without a content here, is an item like any other.
  if not weight or redis.call('HEXISTS', KEYS[9], string.format('%s:0', string.sub(token, 1, 16))) == 0 then
    token, weight = nil, #item
  end
end
if redis.call('LREM', KEYS[7], -1, item) == 0 then return {'absent'} end
local total, problem = count(KEYS[5], KEYS[6], weight, 1)
if not total then
  redis.call('RPUSH', KEYS[7], item)
  return problem
end
add(item)
if token then redis.call('ZADD', KEYS[8], '+inf', token) end
if bound > 0 and length + 1 >= bound then
  redis.call('DEL', KEYS[4])
elseif signs == 0 and bound == 0 then
  redis.call('LPUSH', KEYS[4], '1')
end
return {'done'}
