-- reserve_bounded: note the items that a reader handed out, and reserve the queued ones, if that can be done at once.
-- keys: data bound consumer consumer_free not_full consumed_messages consumed_bytes consumer_holder waiting uploads readers
-- args: reader call handed number size client process lease
--   handed   how many items it ever handed out: all items that it reserved
--   number   how many items at most
--   size     how many bytes at most
--   process  the beginning of the ids of all clients of its process
-- replies: done items | declined
-- uses: role bound count batch deliveries
-- The fast path of `reserve`, for a queue with a bound: no client waits or reads counts, no content is in chunks, and
-- all items of the reader, which it handed out, are from one call. After `declined` nothing has changed, and `reserve`
-- goes on.
local reader, call, handed, client = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[6]
local data, free, not_full, holder, readers = KEYS[1], KEYS[4], KEYS[5], KEYS[8], KEYS[11]

-- The token for space counts twice, and the last two keys so much that neither may exist.
local found = redis.call('EXISTS', free, not_full, not_full, KEYS[9], KEYS[9], KEYS[9], KEYS[9], KEYS[10], KEYS[10], KEYS[10], KEYS[10])
if found > 3 or redis.call('PTTL', KEYS[7]) < 0 then return {'declined'} end
local texts = redis.call('MGET', KEYS[2], KEYS[3])
local bound, last = parse_bound(texts[1]), texts[2]
if not bound or bound == 0 or not last or string.sub(last, 1, #ARGV[7]) ~= ARGV[7] then return {'declined'} end
local _, noted = read_reader(redis.call('HGET', readers, reader))
if noted >= call then return {'declined'} end
local state, out, weight = found % 2 == 1 and 'free' or 'mine', 0, 0
if state == 'mine' then
  local ticket, told, batches, front, looked = unpack(redis.call('HMGET', holder, 'ticket', 'handed', 'batches', 'front', 'looked'))
  if ticket ~= reader or front or looked then return {'declined'} end
  out = handed - tonumber(told)
  local items, bytes = string.match(batches or '', '^(%d+) (%d+) $')
  if tonumber(items) ~= out then return {'declined'} end
  weight = tonumber(bytes)
end
local length = redis.call('LLEN', data)
if length < out then return {'declined'} end

if out > 0 then
  local total, problem = count(KEYS[6], KEYS[7], weight, out)
  if not total then return problem end
  redis.call('LTRIM', data, 0, -out - 1)
  if found < 2 and length - out < bound then redis.call('LPUSH', not_full, '1') end
end
local items, sizes = {}, 0
if length > out then
  items, sizes = read_oldest(data, 0, tonumber(ARGV[4]), tonumber(ARGV[5]), KEYS[10])
end
redis.call('HDEL', readers, reader)
redis.call('HSET', readers, reader, write_reader(0, #items > 0 and call - 1 or call, handed, 0))
if last ~= client then redis.call('SET', KEYS[3], client) end
if #items > 0 then
  hold(state, free, nil, holder, reader, client, '', tonumber(ARGV[8]))
  redis.call('HSET', holder, 'call', call, 'handed', ARGV[3], 'batches', string.format('%d %d ', #items, sizes))
else
  give_back(state, free, nil, holder)
end
return {'done', items}
