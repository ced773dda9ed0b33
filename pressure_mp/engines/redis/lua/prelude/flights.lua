-- Items in flight: got by a process that has not yet said that it is done with them.

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
