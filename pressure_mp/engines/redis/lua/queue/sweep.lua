-- sweep: remove some of the chunks that nobody needs any more.
-- keys: bound data uploads chunks
-- args: token
--   token  whose content the caller has read, or will not put after all; may be empty
-- replies: done left
-- uses: storage chunks
-- `left`: how many contents there are more to remove; call again. What is queued meanwhile stays.
local token, uploads, chunks = ARGV[1], KEYS[3], KEYS[4]
local until_when = tonumber(redis.call('ZSCORE', uploads, token) or 'inf')
if until_when < math.huge then redis.call('ZADD', uploads, 0, token) end
return {'done', sweep(uploads, chunks, redis.call('EXISTS', KEYS[1]) == 1 and size(KEYS[2]) == 0)}
