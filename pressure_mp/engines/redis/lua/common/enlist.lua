-- enlist: note that a process uses an anonymous queue.
-- keys: bound users
-- args: user
-- replies: done | missing
-- uses: bound
if not is_there(KEYS[1]) then return {'missing'} end
redis.call('HSET', KEYS[2], ARGV[1], '1')
return {'done'}
