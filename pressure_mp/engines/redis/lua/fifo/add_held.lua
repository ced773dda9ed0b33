-- add_held: note items in flight that were held in memory which the processes of one host share.
-- keys: bound in_flight deliveries presence consumed_bytes
-- args: lease number held...
--   number  how many items there are
--   held    of each: its number, deliveries, limit, call, owner, and the item. No deliveries: another process
--           acknowledged it, and its owner does not know
-- replies: done | missing
-- uses: bound deliveries role incarnation
-- A call that comes twice does nothing more: until all is moved, no item of these is acknowledged.
if has_former_keys(KEYS[1], KEYS[5]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local in_flight, records, presence = KEYS[2], KEYS[3], KEYS[4]
redis.call('HLEN', records)
redis.call('HLEN', presence)
local till = string.format('%d', milliseconds() + tonumber(ARGV[1]))
for i = 3, 2 + 6 * tonumber(ARGV[2]), 6 do
  local seq, deliveries, limit, call, owner, item = unpack(ARGV, i, i + 5)
  if deliveries ~= '0' then redis.call('HSET', in_flight, seq, item) end
  redis.call('HSET', records, seq, string.format('%s %s %s %s', deliveries, limit, call, owner))
  redis.call('HSET', presence, owner, till)
end
return {'done'}
