-- What inboxes hear, in few commands: these functions write at once.

-- `results` has in these bytes, before the data that the taker said: when it ends, 0 if it is kept for one
-- inbox alone; the number of that inbox's notice; the letter of the outcome (P: processed, B: buried, K:
-- killed, D: dropped); the inbox; and the token of the data's content, if that is in `chunks`.
local KEPT_RESULT = '>I8I8c1ss'
-- `inboxes` has: for how long an inbox is there from each use on, the number of its last notice, and the
-- ticket of who waits for the next.
local INBOX = '>I8I8s'

-- What the notices of an inbox begin with, from a number on.
local function from_number(name, number)
  return name .. '\0' .. (number and struct.pack('>I8', number) or '')
end

-- A member of `notices`. `is_alone`: the result is kept for this inbox alone.
local function notice_of(name, number, event, id, deliveries, error, is_alone)
  return from_number(name, number) .. struct.pack('>I4', deliveries) .. event .. (is_alone and '1' or '0')
    .. id .. '\0' .. error
end

local function read_kept(text)
  local ends, number, outcome, inbox, token, at = struct.unpack(KEPT_RESULT, text)
  return {
    ends = ends, number = number, outcome = outcome, inbox = inbox, token = token,
    data = string.sub(text, at),
  }
end

-- What is kept of the end of a task, nil if nothing is.
local function kept_of(id)
  local text = redis.call('HGET', results, id)
  return text and read_kept(text) or nil
end

-- The inbox that is to hear of a task, false if several are; nil if none is, or it is gone.
local function only_inbox(names)
  if names == '' then return nil end
  if string.find(names, ' ', 1, true) then return false end
  local text = redis.call('HGET', inboxes, names)
  redis.call('ZCARD', notices)
  if not text then return nil end
  local lease, number, ticket = struct.unpack(INBOX, text)
  return {name = names, lease = lease, number = number, ticket = ticket}
end

-- It hears of it. Returns who is to be woken, as a reply has that.
local function tell_only(box, event, id, deliveries, error, is_alone)
  box.number = box.number + 1
  redis.call('ZADD', notices, '0', notice_of(box.name, box.number, event, id, deliveries, error, is_alone))
  redis.call('HSET', inboxes, box.name, struct.pack(INBOX, box.lease, box.number, ''))
  return box.ticket ~= '' and {box.ticket} or ''
end

-- The parts of a notice, without its id; and where that begins, and ends.
local function read_notice(name, member)
  local number, deliveries, event, is_alone, at = struct.unpack('>I8I4c1c1', member, #name + 2)
  return number, deliveries, event, is_alone == '1', at, string.find(member, '\0', at, true) - 1
end

-- The client of an inbox has seen these notices: they go, and with them what was kept for it alone.
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
