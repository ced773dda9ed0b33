-- join: whether every item that was put is dealt with.
-- keys: bound produced_messages consumed_messages done finished consumed_bytes producer_holder
-- args: anyway process
--   anyway, process  as of `length`
-- replies: done | reserved | unfinished finished | missing
-- uses: bound role looks tasks incarnation
-- `reserved`: nothing is unfinished, but space is reserved, for items that may have been accepted.
-- After `unfinished` the sign that everybody waits for is down.
if is_strange(KEYS[1], KEYS[6]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
if unfinished(KEYS[2], KEYS[3], KEYS[4]) <= 0 then
  return {ARGV[1] == '0' and is_written(KEYS[7], ARGV[2]) and 'reserved' or 'done'}
end
redis.call('DEL', KEYS[5])
return {'unfinished', 'finished'}
