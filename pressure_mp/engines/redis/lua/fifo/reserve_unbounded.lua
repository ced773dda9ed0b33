-- reserve_unbounded: note the items that a reader handed out, and reserve the items that it has just read by a plain LRANGE.
-- keys: data bound consumer consumer_free not_full consumed_messages consumed_bytes consumer_holder waiting uploads readers
-- args: reader call told handed kept size client process lease
--   told     how many items it had handed out at its last call, call - 1
--   handed   how many items it ever handed out; `size` is the bytes of the items handed out since its last call
--   kept     how many reserved items it has not handed out
--   process  the beginning of the ids of all clients of its process
-- replies: done left | declined
-- uses: role count deliveries reservation
-- bare: yes
-- The fast path of `reserve`, for a queue without a bound: no client waits or reads counts, and no content is in
-- chunks. `left` is how many items are queued behind the kept ones: when there are neither, the role is given back.
-- After `declined` nothing has changed, and `reserve` goes on. The LRANGE was sent before this call, over the same
-- connection, and after the reply to the reader's last call. If that call is still the last one, the reader had the
-- role all the time: no client took an item, and a client that puts one in front notes that. So the items that it read,
-- behind `told`, are the ones that are there now.
local reader, call, told, handed, kept = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local data, free, holder, client = KEYS[1], KEYS[4], KEYS[8], ARGV[7]

-- The token for space counts once, and each other key twice.
local found = redis.call('EXISTS', KEYS[5], free, free, KEYS[9], KEYS[9], KEYS[10], KEYS[10])
if found ~= 1 or redis.call('PTTL', KEYS[7]) < 0 then return nil end
local ticket, last_call, last_told, front, looked =
  unpack(redis.call('HMGET', holder, 'ticket', 'call', 'handed', 'front', 'looked'))
if ticket ~= reader or tonumber(last_call) ~= call - 1 or last_told ~= told or front or looked then return nil end
local texts = redis.call('MGET', KEYS[2], KEYS[3])
local last = texts[2]
if texts[1] ~= '0' or not last or string.sub(last, 1, #ARGV[8]) ~= ARGV[8] then return nil end
local out = handed - tonumber(told)
local left = redis.call('LLEN', data) - out - kept
if left < 0 then return nil end

local is_over = left + kept == 0
note_call(KEYS[11], reader, is_over and call or call - 1, handed)
local total, problem = count(KEYS[6], KEYS[7], ARGV[6], out)
if not total then return problem end
redis.call('LTRIM', data, 0, -out - 1)
if last ~= client then redis.call('SET', KEYS[3], client) end
if is_over then
  give_back('mine', free, nil, holder)
else
  hold('mine', free, nil, holder, reader, client, '', tonumber(ARGV[9]))
  redis.call('HSET', holder, 'call', call, 'handed', handed, 'batches', '')
end
return tostring(left)
