-- purge: drop the queued items, which count as got, and as done.
-- keys: bound data not_full produced_messages consumed_messages done finished consumer_free consumer_granted consumer_holder waiting uploads consumed_bytes produced_bytes
-- args: client ticket mode turn lease conn
-- replies: done number | busy consumer state | missing
-- uses: role line bound tasks storage incarnation
-- once: yes
-- full: yes
local client, ticket, turn = ARGV[1], ARGV[2], ARGV[4]
local free, granted, holder = KEYS[8], KEYS[9], KEYS[10]

if has_former_keys(KEYS[1], KEYS[13]) then return ADOPT_FIRST end
local entry = leave_line(KEYS[11], turn, ticket)
local state = read_role('consumer', turn, free, granted, holder, ticket, ARGV[5], KEYS[2])
redis.call('ZCARD', KEYS[12])
local bound = read_bound(KEYS[1])
if not bound then
  give_back(state, free, granted, holder)
  return {'missing'}
end
-- A foreign consumer that saw an item must still find it, and a reader the items that it reserved.
if state == 'foreign' or state == 'reserved' then
  local caller = {client = client, ticket = ticket, mode = ARGV[3], turn = turn, lease = ARGV[5]}
  return busy('consumer', state, KEYS[11], entry, caller)
end
local dropped = size(KEYS[2])
-- All bytes that were put have left then.
local bytes = tonumber(read_count(KEYS[14])) - tonumber(read_count(KEYS[13]))
unfinished(KEYS[4], KEYS[5], KEYS[6])
local signs = redis.call('LLEN', KEYS[3])
redis.call('LLEN', KEYS[7])
if dropped > 0 then
  redis.call('INCRBY', KEYS[5], dropped)
  redis.call('INCRBY', KEYS[13], math.max(bytes, 0))
  finish(dropped, KEYS[4], KEYS[5], KEYS[6], KEYS[7])
  clear(KEYS[2])
  for _, token in ipairs(redis.call('ZRANGE', KEYS[12], '+inf', '+inf', 'BYSCORE')) do
    redis.call('ZADD', KEYS[12], 0, token)
  end
  if signs == 0 then redis.call('LPUSH', KEYS[3], '1') end
end
give_back(state, free, granted, holder)
return {'done', dropped}
