-- stats: return all counts of the queue at one moment.
-- keys: bound data closed produced_messages produced_bytes consumed_messages consumed_bytes producer consumer done rejected in_flight readers consumer_holder
-- args: anyway
--   anyway  as in `length`
-- replies: done bound length closed produced_messages produced_bytes consumed_messages consumed_bytes unfinished rejected in_flight producer consumer | reserved | missing
-- uses: bound role looks tasks deliveries storage incarnation
if has_former_keys(KEYS[1], KEYS[7]) then return ADOPT_FIRST end
local exists, bound = read_bound(KEYS[1])
if not exists then return {'missing'} end
if ARGV[1] == '0' and is_read(KEYS[14], KEYS[2]) then return {'reserved'} end
local ahead, all = 0, redis.call('HGETALL', KEYS[13])
for i = 2, #all, 2 do
  local _, _, _, left = read_reader(all[i])
  ahead = ahead + left
end
return {
  'done', bound, size(KEYS[2]), redis.call('EXISTS', KEYS[3]),
  read_count(KEYS[4]), read_count(KEYS[5]), read_count(KEYS[6]), read_count(KEYS[7]),
  unfinished(KEYS[4], KEYS[6], KEYS[10]), redis.call('LLEN', KEYS[11]),
  redis.call('HLEN', KEYS[12]) + ahead,
  redis.call('GET', KEYS[8]), redis.call('GET', KEYS[9]),
}
