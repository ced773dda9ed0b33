-- renew_content: renew the lease of the content of an item that was got: it is still being read.
-- keys: uploads
-- args: token lease
-- replies: done
-- uses: chunks
local until_when = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if until_when > clock() and until_when < math.huge then keep_content(KEYS[1], ARGV[1], ARGV[2], true) end
return {'done'}
