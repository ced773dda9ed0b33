-- open: create a queue, attach to one, or whichever applies (specification: Create).
-- keys: bound data producer consumer producer_free consumer_free produced_messages produced_bytes consumed_messages consumed_bytes not_full closed meta done finished rejected users producer_granted producer_holder consumer_granted consumer_holder deleting waiting in_flight deliveries presence returned producers fetched readers uploads chunks
-- beside: rival_bound rival_meta host_queues
-- args: how maxsize discipline format user note asks
--   how      open | create | attach
--   maxsize  the bound to create with
--   user     the process that uses an anonymous queue; empty for a named one
--   note     the note of the queue with the user's host; or empty
--   asks     1: the reply has the earlier notes there; 0: it does not; empty: the keys beside are at another server
-- replies: done bound created noted | exists bound | missing | mismatch what have
-- uses: bound storage incarnation opening
-- once: yes
local how, maxsize, discipline, format, user = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local rival = find_rival(rival_bound, rival_meta, user, ARGV[7])
if rival then return {'mismatch', 'discipline', rival} end
local before = note_with_host(host_queues, ARGV[6], ARGV[7])
local kept = redis.call('GET', KEYS[1])
if kept then
  local kind, bound = split_bound(kept)
  if how == 'create' then return {'exists', bound} end
  if has_former_keys(KEYS[1], KEYS[10]) then return ADOPT_FIRST end
  local meta = redis.call('HMGET', KEYS[13], 'discipline', 'format')
  if discipline ~= 'fifo' then meta[1] = kind end
  if meta[1] and meta[1] ~= discipline then return {'mismatch', 'discipline', meta[1]} end
  if meta[2] and meta[2] ~= format then return {'mismatch', 'format', meta[2]} end
  if discipline ~= 'fifo' and not meta[2] then -- the record of its kind was removed
    redis.call('HSET', KEYS[13], 'discipline', discipline, 'format', format)
  end
  if user ~= '' then redis.call('HSET', KEYS[17], user, '1') end
  return {'done', bound, 0, before}
end
if how == 'attach' then return {'missing'} end
local data, not_full, closed = KEYS[2], KEYS[11], KEYS[12]
if redis.call('EXISTS', data, KEYS[3]) == 2 and redis.call('EXISTS', closed, KEYS[22]) == 0 then
  -- The bound was removed: the caller states it again. A deletion removes the bound, then closes the queue, and removes
  -- the producer's name before it opens the queue again.
  local other = redis.call('HGET', KEYS[13], 'discipline')
  if other and other ~= discipline then return {'mismatch', 'discipline', other} end
  local length, signs = size(data), redis.call('LLEN', not_full)
  write_bound(KEYS[1], maxsize)
  if maxsize ~= '0' and length >= tonumber(maxsize) then
    redis.call('DEL', not_full)
  elseif signs == 0 then
    redis.call('LPUSH', not_full, '1')
  end
  redis.call('HSET', KEYS[13], 'discipline', discipline, 'format', format)
  if user ~= '' then redis.call('HSET', KEYS[17], user, '1') end
  return {'done', maxsize, 1, before}
end
-- Keys that an unfinished deletion left would be taken for this queue's. The last four keys are the keys beside it, and
-- the lane's.
redis.call('UNLINK', unpack(KEYS, 1, #KEYS - 4))
write_bound(KEYS[1], maxsize)
mark(KEYS[10], '0')
redis.call('LPUSH', KEYS[5], '1')
redis.call('LPUSH', KEYS[6], '1')
redis.call('LPUSH', KEYS[11], '1')
redis.call('HSET', KEYS[13], 'discipline', discipline, 'format', format)
if user ~= '' then redis.call('HSET', KEYS[17], user, '1') end
return {'done', maxsize, 1, before}
