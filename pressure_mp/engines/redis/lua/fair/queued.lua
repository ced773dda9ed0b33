-- queued: count the queued items of one key.
-- keys: bound
-- args: key
-- replies: done number | missing
-- uses: bound storage
if not read_bound(KEYS[1]) then return {'missing'} end
local _, _, number = read_tenant(ARGV[1])
return {'done', number}
