-- length: how many items are queued (specification: Length).
-- keys: bound data consumer_holder producer_holder
-- args: anyway process
--   anyway   1: whatever is reserved
--   process  the caller's, whose writers count for nothing
-- replies: done length | reserved | missing
-- uses: bound role looks storage
-- `reserved`: some of them are reserved, and may be handed out; or space is, for items that were accepted.
if not read_bound(KEYS[1]) then return {'missing'} end
if ARGV[1] == '0' and (is_read(KEYS[3], KEYS[2]) or is_written(KEYS[4], ARGV[2])) then return {'reserved'} end
return {'done', size(KEYS[2])}
