-- join: return whether all items that were put are done.
-- keys: bound produced_messages consumed_messages done finished consumed_bytes
-- replies: done | unfinished finished | missing
-- uses: bound tasks incarnation
-- After `unfinished` the list that waiting clients watch is empty.
if has_former_keys(KEYS[1], KEYS[6]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
if unfinished(KEYS[2], KEYS[3], KEYS[4]) <= 0 then return {'done'} end
redis.call('DEL', KEYS[5])
return {'unfinished', 'finished'}
