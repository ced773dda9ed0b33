-- stats: the queue at one moment.
-- keys: bound data closed produced_messages produced_bytes consumed_messages consumed_bytes producer consumer done rejected flying
-- replies: done bound length closed produced_messages produced_bytes consumed_messages consumed_bytes unfinished rejected in_flight producer consumer | missing
-- uses: bound tasks storage
local bound = redis.call('GET', KEYS[1])
if not read_bound(KEYS[1]) then return {'missing'} end
return {
  'done', bound, size(KEYS[2]), redis.call('EXISTS', KEYS[3]),
  read_count(KEYS[4]), read_count(KEYS[5]), read_count(KEYS[6]), read_count(KEYS[7]),
  unfinished(KEYS[4], KEYS[6], KEYS[10]), redis.call('LLEN', KEYS[11]),
  redis.call('HLEN', KEYS[12]),
  redis.call('GET', KEYS[8]), redis.call('GET', KEYS[9]),
}
