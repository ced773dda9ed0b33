-- reserve: reserve the oldest items for a reader, which hands them out. They stay queued; no other client takes any.
-- keys: data bound consumer consumer_free not_full consumed_messages consumed_bytes consumer_granted consumer_holder waiting uploads readers
-- args: reader call handed kept number size process client lease
--   reader   a ticket of a reader
--   call     the reader's number for this call, larger than those before
--   handed   how many items it ever handed out
--   kept     how many reserved items it has not handed out: the items of the reply come behind them
--   number   how many items at most; 0: only renew the lease of the reservation of this call
--   size     after how many bytes to stop
--   process  the beginning of the ids of all clients of its process
-- replies: done items | shared | late | missing
-- uses: role line bound count chunks batch deliveries reservation incarnation
-- `shared`: another process waits for an item, got the last one, or counted them. Then, and where there is no item to
-- reserve, only the kept items stay reserved. A call that comes twice has the same reply. `late`: the call, or its
-- reservation, is over.
local reader, call, handed, kept = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local number, budget, process, client, lease = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8], tonumber(ARGV[9])
local data, consumer, not_full = KEYS[1], KEYS[3], KEYS[5]
local free, granted, holder, waiting, uploads, readers = KEYS[4], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]

if has_former_keys(KEYS[2], KEYS[7]) then return ADOPT_FIRST end
if is_late(readers, reader, call) then return {'late'} end
local bound = read_bound(KEYS[2])
local state = read_role('consumer', '', free, granted, holder, reader, lease)
if state ~= 'mine' and (kept > 0 or number == 0) then return {bound and 'late' or 'missing'} end
if bound then note_call(readers, reader, call - 1, handed) end
if state == 'mine' then
  local told = tonumber(redis.call('HGET', holder, 'handed'))
  if bound then
    local problem = hand_out(handed - told, holder, data, bound, not_full, KEYS[6], KEYS[7], consumer, client, uploads)
    if problem then return problem end
  end
elseif state ~= 'free' then
  if bound then note_call(readers, reader, call, handed) end
  return {bound and 'shared' or 'missing'}
end

local last = redis.call('GET', consumer)
local alone = bound and (redis.call('HLEN', waiting) == 0 or #candidates(waiting, milliseconds()).consumer == 0)
  and redis.call('HEXISTS', holder, 'front') + redis.call('HEXISTS', holder, 'looked') == 0
  and (not last or string.sub(last, 1, #process) == process)
-- While the reader hands out one half of a queue with a bound, a producer can put the other.
if alone and bound > 0 then number = math.min(number, math.max(math.floor(bound / 2), 1) - kept) end
local items, read = {}, 0
if alone and number > 0 then items, read = read_oldest(data, kept, number, budget, uploads) end
if bound and (#items > 0 or kept > 0 or number == 0) then
  hold(state, free, granted, holder, reader, client, '', lease)
  redis.call('HSET', holder, 'call', call, 'handed', ARGV[3])
  if ARGV[5] ~= '0' then note_batch(holder, kept, #items, read) end
  if last ~= client then redis.call('SET', consumer, client) end
  return {alone and 'done' or 'shared', alone and items or nil}
end
give_back(state, free, granted, holder)
if bound then note_call(readers, reader, call, handed) end
return {not bound and 'missing' or alone and 'done' or 'shared', alone and items or nil}
