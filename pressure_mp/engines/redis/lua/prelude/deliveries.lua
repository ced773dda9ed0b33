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

-- A reader is a handle that fetches items ahead; its process owns these items. Its record: until when it counts as a
-- consumer, its last call, how many items that fetched, how many of these it is known to have handed out, and how many
-- are kept apart.
local function read_reader(record)
  local till, call, fetched, handed, apart = string.match(record or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  return tonumber(till) or 0, tonumber(call) or 0, tonumber(fetched) or 0, tonumber(handed) or 0, tonumber(apart) or 0
end

local function write_reader(till, call, fetched, handed, apart)
  return string.format('%d %d %d %d %d', till, call, fetched, handed, apart)
end

-- Whether items are left that a reader fetched, and is not known to have handed out.
local function has_left(record)
  local _, _, fetched, handed = read_reader(record)
  return fetched > handed
end

local function owner_of(reader)
  return string.match(reader, '^(.+)#%d+')
end

-- Return the common part of the names of one handle's readers.
local function handle_of(reader)
  return string.match(reader, '^.+#%d+') or reader
end

-- From this average of bytes on, each item is kept apart, in a field of its own: packing them would take longer than
-- all the rest.
local LARGER = 700

local function fields_apart(reader, number)
  local fields = {}
  for i = 1, number do fields[i] = string.format('%s:%d', reader, i) end
  return fields
end

-- Keep the items that a reader fetched, of `size` bytes, with their numbers or the first number, and how often each was
-- delivered before, if any was. Returns how many are kept apart.
local function keep_fetched(fetched, reader, items, size, seqs, deliveries)
  if size < LARGER * #items then
    redis.call('HSET', fetched, reader, cmsgpack.pack({items, seqs, deliveries}))
    return 0
  end
  local fields = {reader, cmsgpack.pack({{}, seqs, deliveries})}
  for i, field in ipairs(fields_apart(reader, #items)) do
    fields[2 * i + 1], fields[2 * i + 2] = field, items[i]
  end
  redis.call('HSET', fetched, unpack(fields))
  return #items
end

local function read_fetched(fetched, reader, apart)
  local ok, found = pcall(cmsgpack.unpack, redis.call('HGET', fetched, reader) or '')
  if not ok or type(found) ~= 'table' or type(found[1]) ~= 'table' then return {}, 0 end
  local items, seqs, deliveries = found[1], found[2], found[3]
  if type(seqs) ~= 'number' and type(deliveries) ~= 'table' then return {}, 0 end
  if apart > 0 then items = redis.call('HMGET', fetched, unpack(fields_apart(reader, apart))) end
  for i = 1, #items do
    if not items[i] then return {}, 0 end
  end
  return items, seqs, deliveries
end

local function drop_fetched(fetched, reader, apart)
  redis.call('HDEL', fetched, reader, unpack(fields_apart(reader, apart)))
end
