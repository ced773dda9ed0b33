-- tenants: the keys that have items queued, in no order.
-- keys: bound
-- replies: done keys | missing
-- uses: bound storage
if not read_bound(KEYS[1]) then return {'missing'} end
return {'done', redis.call('HKEYS', tenants)}
