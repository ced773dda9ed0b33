-- enlist: note that a process uses an anonymous queue.
-- keys: bound users
-- args: user
-- replies: done | missing
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
redis.call('HSET', KEYS[2], ARGV[1], '1')
return {'done'}
