-- put_at_once: append one item if that can be done at once (specification: Put, Put (Non-Blocking)).
-- keys: data bound closed producer producer_free not_full produced_messages produced_bytes
-- args: item client
-- replies: done | declined
-- uses: bound count
-- once: yes
-- bare: yes
-- durable: yes
-- The fast path of `put`: no client has the role, and there is space. It has few keys and arguments, since each of them
-- costs time. After `declined` nothing has changed, and `put` goes on.
local item, client = ARGV[1], ARGV[2]
local data, not_full = KEYS[1], KEYS[6]

-- The role and the token for space count twice, so that 4 means: both of them, and not closed.
if redis.call('EXISTS', KEYS[5], KEYS[5], not_full, not_full, KEYS[3]) ~= 4 then return nil end
local texts = redis.call('MGET', KEYS[2], KEYS[4])
local bound = parse_bound(texts[1])
if not bound or (bound > 0 and redis.call('LLEN', data) >= bound) then return nil end

local length = redis.call('LPUSH', data, item)
local total, problem = count(KEYS[7], KEYS[8], #item, 1)
if not total then
  redis.call('LPOP', data)
  return problem
end
if texts[2] ~= client then redis.call('SET', KEYS[4], client) end
if length == bound then redis.call('DEL', not_full) end
return 1
