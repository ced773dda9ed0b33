-- Notices to inboxes, in few commands: these functions write at once.

-- `results` has in these bytes, before the data of the result: its end, 0 if it is kept for one inbox only; the number
-- of that inbox's notice; the letter of the outcome (P: processed, B: buried, K: killed, D: dropped); the inbox; and
-- the token of the data's content, if that is in `chunks`.
local KEPT_RESULT = '>I8I8c1ss'
-- `inboxes` has: the lease of an inbox, which each use renews, the number of its last notice, 1 if it is told of taken
-- tasks too, and the ticket of the client that waits for the next notice: the inbox's name, or ''.
local INBOX = '>I8I8I1s'

-- Return the beginning of the notices of an inbox, from a number on.
local function from_number(name, number)
  return name .. '\0' .. (number and struct.pack('>I8', number) or '')
end

-- Make a member of `notices`. `is_alone`: the result is kept for this inbox only.
local function notice_of(name, number, event, id, deliveries, report, is_alone)
  return from_number(name, number) .. struct.pack('>I4', deliveries) .. event .. (is_alone and '1' or '0')
    .. id .. '\0' .. report
end

local function read_kept(text)
  local ends, number, outcome, inbox, token, at = struct.unpack(KEPT_RESULT, text)
  return {
    ends = ends, number = number, outcome = outcome, inbox = inbox, token = token,
    data = string.sub(text, at),
  }
end

-- Return the result that is kept of a task, nil if there is none.
local function kept_of(id)
  local text = redis.call('HGET', results, id)
  return text and read_kept(text) or nil
end

local function read_inbox(name, text)
  local lease, number, takes, ticket = struct.unpack(INBOX, text)
  return {name = name, lease = lease, number = number, takes = takes, ticket = ticket}
end

local function pack_inbox(box)
  return struct.pack(INBOX, box.lease, box.number, box.takes, box.ticket)
end

-- Return the inbox that is to be told of a task, false if several are; nil if none is, or it is gone.
local function only_inbox(names)
  if names == '' then return nil end
  if string.find(names, ' ', 1, true) then return false end
  local text = redis.call('HGET', inboxes, names)
  redis.call('ZCARD', notices)
  if not text then return nil end
  return read_inbox(names, text)
end

-- Tell an inbox of a task. Returns the ticket of the waiter to wake, '' for none; a waiter that `goes_on` waits for the
-- next notice too.
local function tell_only(box, event, id, deliveries, report, is_alone, goes_on)
  local ticket = box.ticket
  box.number, box.ticket = box.number + 1, goes_on and ticket or ''
  redis.call('ZADD', notices, '0', notice_of(box.name, box.number, event, id, deliveries, report, is_alone))
  redis.call('HSET', inboxes, box.name, pack_inbox(box))
  return ticket
end

local MOST_RUNG, RUNG = 65536, 2000 -- bytes of a result, and milliseconds for which a bell rings

-- Tell an inbox of a processed task, with its result. The notice itself wakes the waiter, which may wait on; but if it
-- has not received the notice before, or this one is large, it must make a request.
local function ring_only(bell, is_heard, box, id, deliveries, report, is_kept, is_alone, result, token)
  local whole = is_heard and #result <= MOST_RUNG
  local ticket = tell_only(box, 'P', id, deliveries, report, is_alone, whole)
  if ticket == '' then return end
  local said = '1'
  if whole then
    said = struct.pack('>I8I4I1I4I1', box.number, deliveries, is_kept and 1 or 0, #report, #token)
      .. report .. token .. id .. '\0' .. result
  end
  redis.call('LPUSH', bell, said)
  redis.call('PEXPIRE', bell, RUNG)
end

-- Return the parts of a notice without its id, and where the id begins and ends.
local function read_notice(name, member)
  local number, deliveries, event, is_alone, at = struct.unpack('>I8I4c1c1', member, #name + 2)
  return number, deliveries, event, is_alone == '1', at, string.find(member, '\0', at, true) - 1
end

-- Remove notices that the client of an inbox has seen, and the results that were kept only for it.
local function drop_seen(name, members)
  redis.call('HLEN', results)
  redis.call('ZCARD', times)
  for start = 1, #members, 1000 do
    local last, ids, numbers, gone = math.min(start + 999, #members), {}, {}, {}
    for i = start, last do
      local number, _, _, is_alone, at, ends = read_notice(name, members[i])
      if is_alone then ids[#ids + 1], numbers[#numbers + 1] = string.sub(members[i], at, ends), number end
    end
    redis.call('ZREM', notices, unpack(members, start, last))
    local found = #ids > 0 and redis.call('HMGET', results, unpack(ids)) or {}
    for i, id in ipairs(ids) do
      local kept = found[i] and read_kept(found[i])
      if kept and kept.inbox == name and kept.number <= numbers[i] then
        gone[#gone + 1] = id
        if kept.token ~= '' then redis.call('ZADD', times, '0', 'c' .. kept.token) end
      end
    end
    if #gone > 0 then redis.call('HDEL', results, unpack(gone)) end
  end
end
