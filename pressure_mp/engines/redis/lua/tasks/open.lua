-- open: create a queue of tasks, attach to one, or whichever applies.
-- keys: bound users
-- beside: rival_bound rival_meta host_queues
-- args: how options discipline format user ttr ttl zombie keep max_deliveries per_key maxsize mends note asks
--   how      open | create | attach
--   options  all of them as text, to create it with; the caller compares them with the queue's own
--   user     the process that uses an anonymous queue; empty for a named one
--   mends    1: make lost keys again from the records of the tasks, see `make_again`; else 0
--   note, asks  as for a queue of items
-- replies: done options noted | exists options | missing | mismatch what have
-- uses: bound opening storage notices changes limits groups transitions repair
-- once: yes
-- full: yes
local how, options, discipline, format, user = unpack(ARGV, 1, 5)
local rival = find_rival(rival_bound, rival_meta, user, ARGV[15])
if rival then return {'mismatch', 'discipline', rival} end
local before = note_with_host(host_queues, ARGV[14], ARGV[15])
local have = redis.call('HMGET', meta, 'discipline', 'format', 'options')
-- It has tasks, and the record of its kind was removed: as for a queue of items that lost its bound, the caller states
-- it.
local is_lost = not have[1] and redis.call('EXISTS', payloads, records, counts) > 0
if have[1] or (not is_lost and redis.call('EXISTS', KEYS[1]) == 1) then
  if how == 'create' then return {'exists', have[3] or ''} end
  if have[1] ~= discipline then return {'mismatch', 'discipline', have[1] or 'fifo'} end
  if have[2] ~= format then return {'mismatch', 'format', have[2] or ''} end
  if user ~= '' then redis.call('HSET', KEYS[2], user, '1') end
  if redis.call('EXISTS', KEYS[1]) == 0 then write_bound(KEYS[1], '0') end
  if ARGV[13] == '1' then make_again() end
  return {'done', have[3], before}
end
if how == 'attach' and not is_lost then return {'missing'} end
write_bound(KEYS[1], '0')
redis.call('HSET', meta, 'discipline', discipline, 'format', format, 'options', options,
  'settings', struct.pack('>I8I8i8I8I8I8I8', unpack(ARGV, 6, 12)), 'created', string.format('%d', now))
-- Ids of existing tasks are not used again.
if is_lost then redis.call('HSET', meta, 'named', '1', 'id', last_id()) end
if user ~= '' then redis.call('HSET', KEYS[2], user, '1') end
return {'done', options, before}
