-- users: list the processes that use an anonymous queue.
-- keys: bound users
-- replies: done users | missing
-- uses: bound
if not is_there(KEYS[1]) then return {'missing'} end
return {'done', redis.call('HKEYS', KEYS[2])}
