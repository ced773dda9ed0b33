-- closed: whether the queue was closed (specification: Closed).
-- keys: bound closed
-- replies: done flag | missing
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
return {'done', redis.call('EXISTS', KEYS[2])}
