-- length: how many items are queued (specification: Length).
-- keys: bound data
-- replies: done length | missing
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
return {'done', redis.call('LLEN', KEYS[2])}
