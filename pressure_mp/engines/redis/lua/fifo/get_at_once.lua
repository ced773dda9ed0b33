-- get_at_once: take the oldest item if that can be done at once (specification: Get, Get (Non-Blocking)).
-- keys: data bound consumer consumer_free not_full consumed_messages consumed_bytes closed uploads
-- args: client
-- replies: done item | empty item | declined
-- uses: bound count oldest
-- once: yes
-- bare: yes
-- The fast path of `get`: no client has the role. It has few keys and arguments, since each of them costs time. After
-- `empty` and `declined` nothing has changed; after `declined` `get` goes on.
local client, data, not_full = ARGV[1], KEYS[1], KEYS[5]

-- The role counts twice: 3 is the role and the token for space.
local found = redis.call('EXISTS', KEYS[4], KEYS[4], not_full)
if found < 2 then return nil end
local texts = redis.call('MGET', KEYS[2], KEYS[3])
local bound = parse_bound(texts[1])
if not bound then return nil end

-- RPOP comes first: it is allowed when the server is out of memory, and so are the commands after it.
local item = redis.call('RPOP', data)
if not item then
  -- The token for space of an empty queue may be lost, which `get` handles, and contents, too.
  if found == 3 and redis.call('EXISTS', KEYS[8], KEYS[9]) == 0 then return {'empty', 'item'} end
  return nil
end
return count_oldest(item, data, bound, not_full, found == 3, KEYS[6], KEYS[7], KEYS[3], texts[2], client)
