-- note_handed: note how many items a reader ever handed out.
-- keys: bound readers fetched consumed_bytes
-- args: reader call handed lease
-- replies: done | late | missing
-- uses: bound deliveries role incarnation
-- `late`: its items were taken away from this reader. Otherwise it counts as a consumer for a lease from now on. A batch
-- whose items are all handed out is not kept.
if has_former_keys(KEYS[1], KEYS[4]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
local readers, fetched, reader, handed = KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[3])
local till, call, told, left, is_fresh, batches = read_reader(redis.call('HGET', readers, reader))
if till == 0 or call ~= tonumber(ARGV[2]) or handed > told + left then return {'late'} end
redis.call('HLEN', fetched)
handed = math.max(handed, told)
left = left - (handed - told)
local kept, gone = read_batches(batches, left)
drop_fetched(fetched, reader, gone)
redis.call('HSET', readers, reader, write_reader(milliseconds() + tonumber(ARGV[4]), call, handed, left, is_fresh, kept))
return {'done'}
