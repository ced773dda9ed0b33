-- length: count the queued items (specification: Length).
-- keys: bound data consumer_holder
-- args: anyway
--   anyway  1: even if items are reserved
-- replies: done length | reserved | missing
-- uses: bound role looks storage
-- `reserved`: some items are reserved, and may be handed out.
if not read_bound(KEYS[1]) then return {'missing'} end
if ARGV[1] == '0' and is_read(KEYS[3], KEYS[2]) then return {'reserved'} end
return {'done', size(KEYS[2])}
