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
local bound = redis.call('GET', KEYS[1])
if read_bound(KEYS[1]) then
  if how == 'create' then return {'exists', bound} end
  if has_former_keys(KEYS[1], KEYS[10]) then return ADOPT_FIRST end
  local meta = redis.call('HMGET', KEYS[13], 'discipline', 'format')
  if meta[1] and meta[1] ~= discipline then return {'mismatch', 'discipline', meta[1]} end
  if meta[2] and meta[2] ~= format then return {'mismatch', 'format', meta[2]} end
  if not meta[1] and discipline ~= 'fifo' then
    -- The record of its kind was removed: the caller states its kind.
    local first = size(KEYS[2]) > 0 and discipline ~= 'lifo' and redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    local other = first and (first[2] == '0' and 'priority' or 'fair')
    if other and other ~= discipline then return {'mismatch', 'discipline', other} end
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
  redis.call('SET', KEYS[1], maxsize)
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
redis.call('SET', KEYS[1], maxsize)
mark(KEYS[10], '0')
redis.call('LPUSH', KEYS[5], '1')
redis.call('LPUSH', KEYS[6], '1')
redis.call('LPUSH', KEYS[11], '1')
redis.call('HSET', KEYS[13], 'discipline', discipline, 'format', format)
if user ~= '' then redis.call('HSET', KEYS[17], user, '1') end
return {'done', maxsize, 1, before}
