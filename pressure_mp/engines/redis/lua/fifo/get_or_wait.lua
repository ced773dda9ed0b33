-- get_or_wait: take the oldest item, or the role to wait for an item, if that can be done at once (specification: Get).
-- keys: data bound closed consumer consumer_free not_full consumed_messages consumed_bytes consumer_holder
-- args: client ticket lease given conn
--   given  the item that came with the wake-up; else empty
-- replies: done item | empty item | declined
-- uses: role bound count oldest
-- once: yes
-- bare: yes
-- The fast path of a `get` that may wait: no other client has the role. After `empty` the caller has it, and calls
-- again when there is an item. After `declined` nothing has changed, and `get` goes on. A client with a receiver's
-- ticket gets the first item with the wake-up; the item stays queued, and no other client takes any, until the receiver
-- calls to remove it, or its lease ends.
local client, ticket, data, free, not_full, holder = ARGV[1], ARGV[2], KEYS[1], KEYS[5], KEYS[6], KEYS[9]
local given = ARGV[4]

-- The role counts twice: 3 is the role and the token for space, 0 and 2 are without the token.
local found = redis.call('EXISTS', free, free, not_full)
local state = found < 2 and 'mine' or 'free'
if state == 'mine' and redis.call('HGET', holder, 'ticket') ~= ticket then return nil end
local texts = redis.call('MGET', KEYS[2], KEYS[4])
local bound = parse_bound(texts[1])
if not bound then return nil end

-- The removal comes first: it is allowed when the server is out of memory, and so are the commands after it.
local item
if given == '' then
  item = redis.call('RPOP', data)
elseif state == 'mine' and redis.call('LREM', data, -1, given) == 1 then
  item = given -- there may be newer items in front of it
else
  return nil
end
if not item then
  -- The token for space of an empty queue may be lost, which `get` handles.
  if found % 2 == 0 or redis.call('EXISTS', KEYS[3]) == 1 then return nil end
  redis.call('LLEN', free) -- checks the type before the first write
  hold(state, free, nil, holder, ticket, client, ARGV[5], tonumber(ARGV[3]))
  if texts[2] ~= client then redis.call('SET', KEYS[4], client) end
  return {'empty', 'item'}
end
local got = count_oldest(item, data, bound, not_full, found % 2 == 1, KEYS[7], KEYS[8], KEYS[4], texts[2], client)
if got == item then give_back(state, free, nil, holder) end
return got
