-- tenants: list the keys with queued items, in no order.
-- keys: bound
-- replies: done keys | missing
-- uses: bound storage
if not read_bound(KEYS[1]) then return {'missing'} end
return {'done', redis.call('HKEYS', tenants)}
