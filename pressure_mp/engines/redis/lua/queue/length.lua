-- length: how many items are queued (specification: Length).
-- keys: bound data
-- replies: done length | missing
-- uses: bound storage
if not read_bound(KEYS[1]) then return {'missing'} end
return {'done', size(KEYS[2])}
