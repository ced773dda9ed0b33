-- read_on: note what a reader handed out, and that it keeps the items which it has just read by a plain LRANGE.
-- keys: data bound consumer consumer_free not_full consumed_messages consumed_bytes consumer_holder waiting uploads readers
-- args: reader call told handed kept size client process lease
--   told     how many items it had handed out at its last call, call - 1
--   handed   how many items it ever handed out; `size` is the bytes of those that it handed out since its last call
--   kept     how many of those that it reserved it has not
--   process  what the ids of all clients of its process begin with
-- replies: done left | declined
-- uses: role count deliveries reservation
-- bare: yes
-- The fast path of `reserve`, of a queue without a bound: nobody waits or looks, and no content is in chunks. `left` says
-- how many items are queued behind those that are kept: when there are neither, the role is given back. After
-- `declined` nothing has changed, and `reserve` says what to do.
-- The LRANGE was sent before this call, over the same connection, and behind the reply to the reader's last call. If
-- that call is still the last one, the role was the reader's all the time: nobody took an item, and who puts one in
-- front notes that. So what it read, behind `told`, is what is there now.
local reader, call, told, handed, kept = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local data, free, holder, client = KEYS[1], KEYS[4], KEYS[8], ARGV[7]

-- The sign of space counts once, and each of the others twice.
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
