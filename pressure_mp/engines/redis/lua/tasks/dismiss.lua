-- dismiss: remove processes from the users of an anonymous queue; the last one removes the queue.
-- keys: bound users meta records payloads ready tubes behind groups due expiry taken bundles shelf counts wake woken waiting awaited outcomes results notices inboxes times chunks uniques presence workers
-- args: user...
-- replies: done left | missing
-- uses: bound
if not is_there(KEYS[1]) then return {'missing'} end
redis.call('HDEL', KEYS[2], unpack(ARGV))
local left = redis.call('HLEN', KEYS[2])
if left == 0 then redis.call('UNLINK', unpack(KEYS)) end
return {'done', left}
