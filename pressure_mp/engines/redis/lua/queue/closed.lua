-- closed: return whether the queue was closed (specification: Closed).
-- keys: bound closed meta
-- args: immediate
--   immediate  1: whether it was closed with `immediate`
-- replies: done flag | missing
-- uses: bound
if not read_bound(KEYS[1]) then return {'missing'} end
if ARGV[1] == '1' then return {'done', redis.call('HEXISTS', KEYS[3], 'dropping')} end
return {'done', redis.call('EXISTS', KEYS[2])}
