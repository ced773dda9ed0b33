-- Items in flight: taken by a process that has not yet said that it is done with them.

-- A flight's record: how often the item was delivered, how often it may be (0: no limit), the
-- number of its owner's call, the owner, and the token of an item whose content is in parts. A delivery count of 0: another process said that
-- the item is dealt with, and its owner does not know yet.
local function read_flight(record)
  local deliveries, limit, call, owner, token =
    string.match(record or '', '^(%d+) (%d+) (%d+) (%S+) ?(%x*)$')
  return tonumber(deliveries), tonumber(limit), call, owner, token ~= '' and token or nil
end

-- The record of an item that was put back: its number, how often it was delivered, its digest.
-- Records stand in the order of their items, the front on the right. Another client may have
-- taken an item away without its record: then the digest does not match.
local function read_returned(record, item)
  local seq, deliveries, digest = string.match(record, '^(%d+) (%d+) (%x+)$')
  if item and digest == redis.sha1hex(item) then return tonumber(seq), tonumber(deliveries) end
end

-- A reader fetches items ahead: a handle of a process, which is the owner of what it fetched. Its
-- record: until when it counts as one that consumes, its last call, how many items that fetched,
-- and how many of these it is known to have handed out.
local function read_reader(record)
  local till, call, fetched, handed = string.match(record or '', '^(%d+) (%d+) (%d+) (%d+)$')
  return tonumber(till) or 0, tonumber(call) or 0, tonumber(fetched) or 0, tonumber(handed) or 0
end

local function owner_of(reader)
  return string.match(reader, '^(.+)#%d+$')
end

-- What a reader fetched last: the items, their numbers or the first of them, and how often each
-- was delivered before, if any was.
local function read_fetched(packed)
  local ok, found = pcall(cmsgpack.unpack, packed or '')
  if not ok or type(found) ~= 'table' or type(found[1]) ~= 'table' then return {}, 0 end
  local seqs, deliveries = found[2], found[3]
  if type(seqs) ~= 'number' and type(deliveries) ~= 'table' then return {}, 0 end
  return found[1], seqs, deliveries
end
