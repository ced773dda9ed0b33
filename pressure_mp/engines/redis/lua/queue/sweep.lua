-- sweep: remove some of the chunks that are no longer needed.
-- keys: bound data uploads chunks
-- args: token
--   token  of a content that the caller has read, or will not put; may be empty
-- replies: done left
-- uses: bound storage chunks
-- `left`: how many contents have more to remove; call again. Contents whose items are queued meanwhile stay.
local token, uploads, chunks = ARGV[1], KEYS[3], KEYS[4]
-- A server whose memory is full refuses to write that the token's time is over, but not to remove.
if tonumber(redis.call('ZSCORE', uploads, token) or 'inf') < math.huge then
  local _, all = drop_chunks(chunks, token, FEW)
  if not all then return {'done', 1} end
  redis.call('ZREM', uploads, token)
end
return {'done', sweep_contents(uploads, chunks, is_there(KEYS[1]) and size(KEYS[2]) == 0)}
