-- users: list the processes that use an anonymous queue.
-- keys: bound users
-- replies: done users | missing
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
return {'done', redis.call('HKEYS', KEYS[2])}
