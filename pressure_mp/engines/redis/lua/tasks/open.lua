-- open: create a queue of tasks, attach to one, or whichever applies.
-- keys: bound users
-- args: how options discipline format user ttr ttl zombie keep max_deliveries per_key
--   how      open | create | attach
--   options  all of them as text, to create it with; whether they are the queue's own the caller sees
--   user     the process that uses an anonymous queue; empty for a named one
-- replies: done options | exists options | missing | mismatch what have
-- uses: storage
-- once: yes
local how, options, discipline, format, user = unpack(ARGV, 1, 5)
if redis.call('EXISTS', KEYS[1]) == 1 then
  local have = redis.call('HMGET', meta, 'discipline', 'format', 'options')
  if how == 'create' then return {'exists', have[3] or ''} end
  if have[1] ~= discipline then return {'mismatch', 'discipline', have[1] or 'fifo'} end
  if have[2] ~= format then return {'mismatch', 'format', have[2] or ''} end
  if user ~= '' then redis.call('HSET', KEYS[2], user, '1') end
  return {'done', have[3]}
end
if how == 'attach' then return {'missing'} end
redis.call('SET', KEYS[1], '0')
redis.call('HSET', meta, 'discipline', discipline, 'format', format, 'options', options,
  'settings', struct.pack('>I8I8i8I8I8I8', unpack(ARGV, 6, 11)), 'created', string.format('%d', now))
if user ~= '' then redis.call('HSET', KEYS[2], user, '1') end
return {'done', options}
