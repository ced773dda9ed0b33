-- Items in flight: taken by a process, and not yet acknowledged.

-- A delivery's record: how often the item was delivered, how often it may be (0: no limit), the number of its owner's
-- call, the owner, and the token of an item whose content is in chunks. With a delivery count of 0 another process
-- acknowledged the item, and its owner does not know yet.
local function read_delivery(record)
  local deliveries, limit, call, owner, token =
    string.match(record or '', '^(%d+) (%d+) (%d+) (%S+) ?(%x*)$')
  return tonumber(deliveries), tonumber(limit), call, owner, token ~= '' and token or nil
end

-- The record of an item that was requeued: its number, how often it was delivered, its digest. Records stand in the
-- order of their items, the front on the right. Another client may have taken an item without its record: then the
-- digest does not match.
local function read_returned(record, item)
  local seq, deliveries, digest = string.match(record, '^(%d+) (%d+) (%x+)$')
  if item and digest == redis.sha1hex(item) then return tonumber(seq), tonumber(deliveries) end
end

-- A reader is a handle that prefetches items; its process owns these items. Its record: until when it counts as a
-- consumer, its last call, how many items it is known to have handed out in all, how many items are left, whether that
-- call fetched the last batch (1) or nothing (0), and the batches, the oldest first: the slot of each, its items, and how
-- many of these are kept apart. The items that are left are the last ones of the batches. When the first number is 0,
-- nothing is left, and that call, or one before it, does nothing when it comes.
local function read_reader(record)
  local till, call, handed, left, fetched, batches =
    string.match(record or '', '^(%d+) (%d+) (%d+) (%d+) ([01])(.*)$')
  return tonumber(till) or 0, tonumber(call) or 0, tonumber(handed) or 0, tonumber(left) or 0, fetched == '1', batches or ''
end

local function write_reader(till, call, handed, left, fetched, batches)
  local record = string.format('%d %d %d %d %d', till, call, handed, left, fetched and 1 or 0)
  for _, batch in ipairs(batches or {}) do
    record = string.format('%s %d:%d:%d', record, batch.slot, batch.number, batch.apart)
  end
  return record
end

-- Return the batches with the last `left` items, and those before them, of which no item is left.
local function read_batches(text, left)
  local all = {}
  for slot, number, apart in string.gmatch(text, ' (%d+):(%d+):(%d+)') do
    all[#all + 1] = {slot = tonumber(slot), number = tonumber(number), apart = tonumber(apart)}
  end
  local first = #all + 1
  while left > 0 and first > 1 do
    first = first - 1
    left = left - all[first].number
  end
  return {unpack(all, first)}, {unpack(all, 1, first - 1)}
end

-- Whether items are left that a reader fetched, and is not known to have handed out.
local function has_left(record)
  local _, _, _, left = read_reader(record)
  return left > 0
end

-- Return how many items count as handed out: the reader cannot have handed out more items than it had left.
local function count_handed(handed, told, left)
  return math.max(told, math.min(handed, told + left))
end

local function owner_of(reader)
  return string.match(reader, '^(.+)#%d+$')
end

-- From this average of bytes on, each item is kept apart, in a field of its own: packing them would take longer than
-- all the rest.
local LARGER = 700

local function field_of(reader, slot)
  return string.format('%s:%d', reader, slot)
end

local function fields_apart(field, number)
  local fields = {}
  for i = 1, number do fields[i] = string.format('%s:%d', field, i) end
  return fields
end

-- Return the first slot that none of the batches is in.
local function free_slot(batches)
  local taken, slot = {}, 0
  for _, batch in ipairs(batches) do taken[batch.slot] = true end
  while taken[slot] do slot = slot + 1 end
  return slot
end

-- Keep a batch of items that a reader fetched, of `size` bytes, in a slot, with their numbers or the first number, and
-- how often each was delivered before, if any was. Returns the batch.
local function keep_fetched(fetched, reader, slot, items, size, seqs, deliveries)
  local field, batch = field_of(reader, slot), {slot = slot, number = #items, apart = 0}
  if size < LARGER * #items then
    redis.call('HSET', fetched, field, cmsgpack.pack({items, seqs, deliveries}))
    return batch
  end
  local fields = {field, cmsgpack.pack({{}, seqs, deliveries})}
  for i, apart in ipairs(fields_apart(field, #items)) do
    fields[2 * i + 1], fields[2 * i + 2] = apart, items[i]
  end
  redis.call('HSET', fetched, unpack(fields))
  batch.apart = #items
  return batch
end

local function read_fetched(fetched, reader, batch)
  local field = field_of(reader, batch.slot)
  local ok, found = pcall(cmsgpack.unpack, redis.call('HGET', fetched, field) or '')
  if not ok or type(found) ~= 'table' or type(found[1]) ~= 'table' then return {}, 0 end
  local items, seqs, deliveries = found[1], found[2], found[3]
  if type(seqs) ~= 'number' and type(deliveries) ~= 'table' then return {}, 0 end
  if batch.apart > 0 then items = redis.call('HMGET', fetched, unpack(fields_apart(field, batch.apart))) end
  for i = 1, #items do
    if not items[i] then return {}, 0 end
  end
  return items, seqs, deliveries
end

local function drop_fetched(fetched, reader, batches)
  for _, batch in ipairs(batches) do
    local field = field_of(reader, batch.slot)
    redis.call('HDEL', fetched, field, unpack(fields_apart(field, batch.apart)))
  end
end
