-- fill: append the items that a writer accepted, or reserve space for it, if that can be done at once.
-- keys: data bound closed producer producer_free not_full produced_messages produced_bytes producer_holder waiting
-- args: number writer period client process lease item...
--   number   how many items there are; 0: only to reserve space
--   process  what the ids of all clients of its process begin with
-- replies: done left | declined
-- uses: role bound count
-- once: yes
-- bare: yes
-- durable: yes
-- The fast path of `put_many` for a writer, of a queue with a bound: nobody waits or looks, and there is space. It
-- has few keys, and asks for little, since each of them costs time. After `declined` nothing has changed, and
-- `put_many` says what to do.
local number, writer, client = tonumber(ARGV[1]), ARGV[2], ARGV[4]
local data, free, not_full, holder = KEYS[1], KEYS[5], KEYS[6], KEYS[9]

-- The sign of space counts twice, and each of the last two so often that there is neither.
local found = redis.call('EXISTS', free, not_full, not_full, KEYS[3], KEYS[3], KEYS[3], KEYS[3], KEYS[10], KEYS[10], KEYS[10], KEYS[10])
if found ~= 2 and found ~= 3 then return nil end
local texts = redis.call('MGET', KEYS[2], KEYS[4])
local bound, last = parse_bound(texts[1]), texts[2]
local state = found == 3 and 'free' or 'mine'
if state == 'mine' then
  local ticket, looked = unpack(redis.call('HMGET', holder, 'ticket', 'looked'))
  if ticket ~= writer or looked then return nil end
elseif not last or string.sub(last, 1, #ARGV[5]) ~= ARGV[5] then
  return nil
end
if not bound or bound == 0 then return nil end
local left = bound - redis.call('LLEN', data) - number
if left < 0 or left + number == 0 then return nil end

if number > 0 then
  local size = 0
  for i = 7, number + 6 do size = size + #ARGV[i] end
  local total, problem = count(KEYS[7], KEYS[8], size, number)
  if not total then return problem end
  redis.call('LPUSH', data, unpack(ARGV, 7, number + 6))
end
if last ~= client then redis.call('SET', KEYS[4], client) end
if left == 0 then
  redis.call('DEL', not_full)
  give_back(state, free, nil, holder)
else
  hold(state, free, nil, holder, writer, client, '', tonumber(ARGV[6]))
  redis.call('HSET', holder, 'period', ARGV[3])
end
return tostring(left)
