-- note_handed: note how many of the items that a reader fetched were handed out.
-- keys: bound readers fetched consumed_bytes
-- args: reader call number lease
-- replies: done | late | missing
-- uses: bound deliveries role incarnation
-- `late`: the items were taken away from this reader. Otherwise it counts as a consumer for a lease from now on. When
-- all are handed out, none is kept.
if has_former_keys(KEYS[1], KEYS[4]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local readers, reader, number = KEYS[2], ARGV[1], tonumber(ARGV[3])
local _, call, fetched, handed, apart = read_reader(redis.call('HGET', readers, reader))
if call ~= tonumber(ARGV[2]) then return {'late'} end
redis.call('HLEN', KEYS[3])
local till = milliseconds() + tonumber(ARGV[4])
local is_over = number >= fetched
if fetched > 0 and is_over then drop_fetched(KEYS[3], reader, apart) end
redis.call('HSET', readers, reader, write_reader(till, call, fetched, math.max(number, handed), is_over and 0 or apart))
return {'done'}
