-- take: take the next tasks, of one tube or of all.
-- keys: presence woken
-- args: owner call limit size ttr tube ticket entry mode turn lease
--   owner  the process that answers for the tasks
--   call   the owner's number of this take
--   limit  how many tasks at most
--   size   how many bytes of data at most, unless it is one task
--   ttr    milliseconds until they are ready again; '' for the queue's own
--   entry  what the reply before said, when the caller looks again
--   mode   wait | now: whether the caller will wait when there is none
--   turn   first | again: whether it waited before
--   lease  milliseconds for which the owner is known to be there
-- replies: done bells ids records payloads | empty bells next entry | closed bells | missing
-- uses: storage ready
-- once: yes
-- `next` is in how many milliseconds to look again at the latest, 0 for at once, waiting or not; ''
-- when that does not matter.
local LOOKS = 10 -- among tasks that should be gone already
if not settings then return {'missing'} end
local owner, call, limit, size, ttr, tube, ticket, entry, mode, turn, lease = unpack(ARGV, 1, 11)
local presence, woken = KEYS[1], KEYS[2]
call, limit, size = tonumber(call), tonumber(limit), tonumber(size)
local ends = lifetime(ttr ~= '' and tonumber(ttr) or settings.ttr)
sweep()
if turn == 'again' then
  redis.call('DEL', woken)
  if entry ~= '' then redis.call('ZREM', waiting, entry) end
end

local there_until = tonumber(redis.call('HGET', presence, owner) or '0')

local timed = struct.pack('>I8I8', now, ends)
local named = struct.pack('>I8', call)
local held, ids, told, data, bytes, looks, members = hold(owner, call), {}, {}, {}, 0, 0, nil

-- A ready task's record is that of a taken one from now on: what differs is put in its place.
local function capture(id, record, deliveries, of, at)
  local place = string.sub(record, 2, 17) .. id
  note(removed, ready, place)
  if of ~= '' then note(removed, tubes, tube_of(of) .. place) end
  note(added, taken, 0, held .. id)
  if ends > 0 then note(added, due, ends, id) end
  local new = 'T' .. string.sub(record, 2, 25) .. timed .. struct.pack('>I8', deliveries + 1) .. named
    .. of .. '\0' .. owner .. '\0' .. string.sub(record, at)
  note(set, records, id, new)
  return new
end

repeat
  looks = looks + 1
  members = next_ready(tube, 0, limit)
  for i, member in ipairs(members) do members[i] = id_in(member, tube) end
  local found = #members > 0 and redis.call('HMGET', records, unpack(members)) or {}
  for i, id in ipairs(members) do
    local until_then, deliveries, _, of, _, at = struct.unpack('>I8I8I8ss', found[i], 34)
    if until_then > 0 and until_then <= now then
      lapse(read(id, found[i]))
    else
      local payload = redis.call('HGET', payloads, id)
      bytes = bytes + #payload
      if bytes > size and #ids > 0 then break end
      if until_then > 0 then note(removed, expiry, id) end
      count('R', 'T', of, 1)
      ids[#ids + 1], data[#data + 1] = id, payload
      told[#told + 1] = capture(id, found[i], deliveries, of, at)
    end
  end
  if #ids > 0 and ends > 0 and ends < now + TICK then notice(tube) end
  flush()
until #ids > 0 or #members == 0 or looks == LOOKS

if #ids > 0 then
  if there_until < now + lease / 2 then
    redis.call('HSET', presence, owner, string.format('%d', now + lease))
  end
  -- Who was woken, or watched the time, passes that on.
  if turn == 'again' then
    local soon = next_due()
    if redis.call('ZCARD', ready) > 0 or (soon ~= '' and soon < TICK) then notice(tube) end
  end
  return answer('done', ids, told, data)
end
if #members > 0 then return answer('empty', 0, '') end
if settings.closed then
  somebody = true -- the next who waits
  return answer('closed')
end
local soon = next_due()
if tube == '' then redis.call('DEL', wake) end
if mode == 'wait' then
  return answer('empty', soon, tube ~= '' and stand(tube, ticket) or '')
end
if turn == 'again' and soon ~= '' and soon < TICK then notice(tube) end
return answer('empty', soon, '')
