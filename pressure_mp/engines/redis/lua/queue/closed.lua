-- closed: return whether the queue was closed (specification: Closed).
-- keys: bound closed
-- replies: done flag | missing
-- uses: bound
if not read_bound(KEYS[1]) then return {'missing'} end
return {'done', redis.call('EXISTS', KEYS[2])}
