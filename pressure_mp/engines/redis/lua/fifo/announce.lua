-- announce: a reader is about to take items, or to look at how many there are.
-- keys: bound meta readers consumed_bytes
-- args: reader
-- replies: alone | shared | busy consumer whose | missing
-- uses: bound deliveries incarnation
-- The first is the only one until another one comes. That one is to ask again, as long as the first is not
-- known to have handed out what it fetched alone.
if is_strange(KEYS[1], KEYS[4]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local meta, readers, reader = KEYS[2], KEYS[3], ARGV[1]
redis.call('HLEN', readers) -- of the right type, before the first write
local only = redis.call('HGET', meta, 'only')
if not only then redis.call('HSET', meta, 'only', reader) end
if not only or only == reader then return {'alone'} end
local first = string.match(only, '^shared (.*)$')
if not first then
  first = only
  redis.call('HSET', meta, 'only', string.format('shared %s', first))
end
if first ~= reader and has_left(redis.call('HGET', readers, first)) then return {'busy', 'consumer', 'ours'} end
return {'shared'}
