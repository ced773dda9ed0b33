-- end_reservation: a reader, or who knows it, says how many of the items that it reserved it handed out. The others are for anybody.
-- keys: data bound consumer consumer_free not_full consumed_messages consumed_bytes consumer_claim consumer_holder uploads readers
-- args: reader call handed before who client
--   call    its last call, which nobody may have heard the reply to
--   handed  how many items of that it handed out
--   before  how many of the call before, if the last one was not made yet. It does nothing when it comes
--   who     reader, which says so itself; dead: it has ended; stopped: only if its lease has ended
-- replies: done number | late number
-- uses: role bound count chunks batch deliveries reservation incarnation
-- `late`: it has reserved nothing any more. `number` says how many items of that call count as handed out.
local reader, call, who, client = ARGV[1], tonumber(ARGV[2]), ARGV[5], ARGV[6]
local free, claim, holder, readers = KEYS[4], KEYS[8], KEYS[9], KEYS[11]

if is_strange(KEYS[2], KEYS[7]) then return ADOPT_FIRST end
local _, noted, counted = read_reader(redis.call('HGET', readers, reader))
if who == 'reader' and noted >= call then return {'late', noted == call and counted or 0} end
local last, till
if redis.call('HGET', holder, 'ticket') == reader then
  last, till = unpack(redis.call('HMGET', holder, 'call', 'until'))
  last = tonumber(last)
end
if who == 'stopped' and (not till or milliseconds() <= tonumber(till)) then return {'late', 0} end
local bound, number = read_bound(KEYS[2]), 0
if last == call then
  number = tonumber(ARGV[3])
elseif last and last < call then
  number = tonumber(ARGV[4])
end
counted = last == call and number or 0
if bound then
  note_call(readers, reader, math.max(call, last or 0), counted)
  local problem = hand_out(number, holder, KEYS[1], bound, KEYS[5], KEYS[6], KEYS[7], KEYS[3], client, KEYS[10])
  if problem then return problem end
end
if last then give_back('mine', free, claim, holder) end
if who == 'dead' then redis.call('HDEL', readers, reader) end
return {last and 'done' or 'late', counted}
