-- adopt: from now on what is kept beside the protocol's keys belongs to this queue; what was kept for a former one goes.
-- keys: bound consumed_bytes meta done finished rejected users in_flight deliveries presence returned producers fetched readers uploads chunks
-- replies: done
-- uses: incarnation
-- The roles, and who stands in line for them, are not among it: they are as the tokens are, which
-- every client knows. To remove comes first: that is allowed when the server is out of memory.
if is_strange(KEYS[1], KEYS[2]) then
  local count = redis.call('GET', KEYS[2]) or '0'
  redis.call('UNLINK', unpack(KEYS, 3))
  mark(KEYS[2], count)
end
return {'done'}
