-- take_back: undo a call that took items and whose reply is not used: they go back to the front, in order.
-- keys: bound data not_full meta produced_messages consumed_messages consumed_bytes done finished uploads consumer_holder closed
-- args: if_open
--   if_open  1: nothing is undone when the queue was shut down, and the items stay taken
-- replies: done returned | taken items | missing
-- uses: bound tasks chunks storage front incarnation
-- lane: yes
-- The last key keeps the reply in the lane of that call, the last argument is the call's number there. A call that was
-- not done yet is never done; undoing it twice does nothing more. Items go back beyond the bound if necessary. On a
-- queue that was shut down with `immediate` they are dropped, and count as done.
local kept, number = KEYS[#KEYS], tonumber(ARGV[#ARGV])
if has_former_keys(KEYS[1], KEYS[7]) then return ADOPT_FIRST end
local bound, data, not_full, uploads = read_bound(KEYS[1]), KEYS[2], KEYS[3], KEYS[10]
local last, replied, reply, place = unpack(redis.call('HMGET', kept, 'number', 'replied', 'reply', 'place'))
last, replied = tonumber(last or '0'), tonumber(replied or '')
if not last or last > number then return {'done', 0} end

local items, places = {}, {}
if bound and reply and last == number and replied == number then
  items[1], places[1] = reply, place
elseif bound and reply and last == number and replied == -number then
  local ok, kept = pcall(cmsgpack.unpack, reply)
  if ok and type(kept) == 'table' and kept[1] == 'done' then
    for step = 2, #kept do
      for _, item in ipairs(kept[step]) do items[#items + 1] = item end
    end
    if place then places = cmsgpack.unpack(place) end
  end
end
local length, dropping = bound and size(data) or 0, redis.call('HGET', KEYS[4], 'dropping')
unfinished(KEYS[5], KEYS[6], KEYS[8])
local bytes, weight = tonumber(read_count(KEYS[7])), 0
redis.call('LLEN', KEYS[9])
local signs = redis.call('LLEN', not_full)
-- Not consumed in this queue: the record is from a queue that another implementation deleted.
if tonumber(read_count(KEYS[6])) < #items then items = {} end
if ARGV[1] == '1' and #items > 0 and not dropping and redis.call('EXISTS', KEYS[12]) == 1 then
  return {'taken', items}
end
local tokens = {}
for i, item in ipairs(items) do
  local heavy, token = size_of(uploads, item)
  weight, tokens[i] = weight + heavy, token or false
end
local put_back = returning(data, length)

redis.call('HSET', kept, 'number', number + 1)
redis.call('HDEL', kept, 'replied', 'reply', 'place')
if last == 0 then redis.call('PEXPIRE', kept, 60000) end
if #items == 0 then return {bound and 'done' or 'missing', 0} end
for i = 1, #items do
  if tokens[i] then redis.call('ZADD', uploads, dropping and 0 or '+inf', tokens[i]) end
end
if dropping then
  finish(#items, KEYS[5], KEYS[6], KEYS[8], KEYS[9])
  return {'done', 0}
end
redis.call('INCRBY', KEYS[6], -#items)
redis.call('INCRBY', KEYS[7], -math.min(weight, bytes))
for i = #items, 1, -1 do put_back(items[i], places[i]) end
note_in_front(KEYS[11], #items)
if signs > 0 and bound > 0 and length + #items >= bound then redis.call('DEL', not_full) end
return {'done', #items}
