-- end_reservation: end a reader's reservation, by itself or by another client; any client may take the other items.
-- keys: data bound consumer consumer_free not_full consumed_messages consumed_bytes consumer_granted consumer_holder uploads readers
-- args: reader call handed cause client
--   call    its last call, which does nothing when it comes after this; 0 if that is not known
--   handed  how many items it ever handed out; or empty, if that is not known
--   cause   reader: the reader itself calls; dead: it has ended; stopped: only if its lease has ended
-- replies: done number | late number
-- uses: role bound count chunks batch deliveries reservation incarnation
-- `late`: its reservation was over. `number` is how many of its items in all count as handed out.
local reader, call, handed, cause, client = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local free, granted, holder, readers = KEYS[4], KEYS[8], KEYS[9], KEYS[11]

if has_former_keys(KEYS[2], KEYS[7]) then return ADOPT_FIRST end
local _, noted, counted = read_reader(redis.call('HGET', readers, reader))
if cause == 'reader' and noted >= call then return {'late', counted} end
local told, last, till
if redis.call('HGET', holder, 'ticket') == reader then
  told, last, till = unpack(redis.call('HMGET', holder, 'handed', 'call', 'until'))
  told = tonumber(told)
end
if cause == 'stopped' and (not till or milliseconds() <= tonumber(till)) then return {'late', counted} end
local bound = read_bound(KEYS[2])
if told then counted = math.max(handed or told, told) end
if bound then
  note_call(readers, reader, math.max(call, tonumber(last) or 0), counted)
  local number = told and counted - told or 0
  local problem = hand_out(number, holder, KEYS[1], bound, KEYS[5], KEYS[6], KEYS[7], KEYS[3], client, KEYS[10])
  if problem then return problem end
end
if told then give_back('mine', free, granted, holder) end
if cause == 'dead' then redis.call('HDEL', readers, reader) end
return {told and 'done' or 'late', counted}
