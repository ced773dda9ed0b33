-- put_one: the fast path of `put`: one task that is ready at once and without an end, in no tube and with no key.
-- args: ids priority result_ttl inbox id data
--   as in put
-- replies: done id | declined | missing
-- uses: storage
-- once: yes
-- durable: yes
-- bare: yes
-- It writes directly, and names few keys. It makes no transitions that are due: tasks with such transitions are not put
-- in this way.
if not settings then return {'missing'} end
if settings.closed or settings.ttl > 0 or settings.limits or settings.bound > 0 then return nil end
local kind, priority, result_ttl, inbox, id, data = unpack(ARGV, 1, 6)
local seq, is_named = next_seq(), id ~= ''
local last, counter = string.format('%d', seq), nil
if id == '' and kind == 'auto_increment' then
  counter = string.format('%d', settings.id + 1)
  id = counter
elseif id == '' then
  id = last
end
local is_usual = id == last and priority == USUAL and is_on_time(seq) and result_ttl == '0' and inbox == ''
if redis.call('HEXISTS', payloads, id) == 1 then return nil end
if (is_named or settings.named) and redis.call('HEXISTS', results, id) == 1 then return nil end
if not is_usual then redis.call('HLEN', records) end
redis.call('ZCARD', ready)
local signs, place = redis.call('LLEN', wake), priority .. struct.pack('>I8', seq)

redis.call('HINCRBY', counts, 'X-R', 1)
if not is_usual then
  redis.call('HSET', records, id, 'R' .. place .. struct.pack('>I8I8I8I8I8i8', now, now, 0, 0, 0, result_ttl)
    .. '\0\0\0' .. inbox .. '\0\0')
end
redis.call('HSET', payloads, id, data)
redis.call('ZADD', ready, '0', place .. id)
redis.call('HSET', meta, 'seq', last)
if counter then redis.call('HSET', meta, 'id', counter) end
if is_named and not settings.named then redis.call('HSET', meta, 'named', '1') end
if signs == 0 and not is_paused('') then redis.call('LPUSH', wake, '1') end
return id
