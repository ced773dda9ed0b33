-- store: keep one part of the content of an item that is going to be put.
-- keys: bound closed data uploads parts consumed_bytes
-- args: token number lease part
--   number  of the part, from 0 on; with part 0 the content begins
-- replies: done | lost | closed | missing
-- uses: bound storage parts incarnation
-- `lost`: nothing came for longer than the lease, so the parts before this one may have been removed.
if is_strange(KEYS[1], KEYS[6]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
if redis.call('EXISTS', KEYS[2]) == 1 then return {'closed'} end
local token, number, uploads, parts = ARGV[1], ARGV[2], KEYS[4], KEYS[5]
if number == '0' then
  sweep(uploads, parts, size(KEYS[3]) == 0)
elseif tonumber(redis.call('ZSCORE', uploads, token) or 0) <= clock() then
  return {'lost'}
end
redis.call('HSET', parts, string.format('%s:%d', string.sub(token, 1, 16), number), ARGV[4])
keep(uploads, token, ARGV[3])
return {'done'}
