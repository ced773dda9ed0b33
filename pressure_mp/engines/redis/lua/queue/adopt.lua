-- adopt: remove the keys that this package kept for a former queue, and mark these keys as this queue's from now on.
-- keys: bound consumed_bytes meta done finished rejected users in_flight deliveries presence returned producers fetched readers uploads chunks
-- replies: done
-- uses: incarnation
-- The keys of roles and lines stay: they belong to the tokens, which all clients know. The removal comes first: it is
-- allowed when the server is out of memory.
if has_former_keys(KEYS[1], KEYS[2]) then
  local count = redis.call('GET', KEYS[2]) or '0'
  redis.call('UNLINK', unpack(KEYS, 3))
  mark(KEYS[2], count)
end
return {'done'}
