-- store: store one chunk of the content of an item that will be put.
-- keys: bound closed data uploads chunks consumed_bytes
-- args: token number lease chunk
--   number  of the chunk, from 0 on
-- replies: done | lost | closed | missing
-- uses: bound storage chunks incarnation
-- `lost`: no chunk came for longer than the lease, so earlier chunks may have been removed.
if has_former_keys(KEYS[1], KEYS[6]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
if redis.call('EXISTS', KEYS[2]) == 1 then return {'closed'} end
local token, number, uploads, chunks = ARGV[1], ARGV[2], KEYS[4], KEYS[5]
if number == '0' then
  sweep_contents(uploads, chunks, size(KEYS[3]) == 0)
elseif tonumber(redis.call('ZSCORE', uploads, token) or 0) <= clock() then
  return {'lost'}
end
redis.call('HSET', chunks, string.format('%s:%d', string.sub(token, 1, 16), number), ARGV[4])
keep_content(uploads, token, ARGV[3])
return {'done'}
