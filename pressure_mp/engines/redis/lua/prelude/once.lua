-- Do an operation once, however often its call arrives: a client that lost the connection before the reply came sends
-- the same call again, under the same number. The last argument is the call's number in its lane, or the number and for
-- how many milliseconds from now the lane's last number and reply are kept, or '' to keep nothing. A reply that is not
-- kept was a bare `done`. A reply of `done` and a string is kept as that string, and `replied` is its number; any other
-- reply is packed, and the number is negative: so large replies are copied as seldom as possible. A script with `bare:
-- yes` in its header returns a string, 1 or nil, which is `done` with the string, `done` or `declined` in a repeated
-- call. A table's `place` is kept beside it, for `take_back`. A table with `is_asked_for` is kept as a bare `done`: a
-- client that repeats the call requests the rest. A script with `full: yes` in its header is done also when the server
-- has no memory left: it adds little, and it is needed to free memory. The server refuses no command of a script that
-- has written; so a command that needs no memory comes first. A repeated call writes too, so that waiting for replicas
-- after it is waiting for its effect. A reply that was given before is {'again', reply}. A script with `once: mending`
-- in its header is done also where the lane's key has a value that no client of this package writes: that is removed.
local function once(operation, mending, full)
  local kept, number, keep = KEYS[#KEYS], tonumber(ARGV[#ARGV]), nil
  if not number then
    if ARGV[#ARGV] == '' then
      if full then redis.pcall('HDEL', kept, '') end
      return operation()
    end
    number, keep = string.match(ARGV[#ARGV], '^(%d+) (%d+)$')
    number = tonumber(number)
  end
  local last, counted = redis.pcall('HINCRBY', kept, 'number', 1), 1
  if full and type(last) == 'table' and string.sub(last.err, 1, 3) == 'OOM' then
    redis.pcall('HDEL', kept, '')
    last = redis.pcall('HINCRBY', kept, 'number', 1)
  end
  if type(last) == 'table' and mending and string.sub(last.err, 1, 3) ~= 'OOM' then
    redis.call('DEL', kept)
    last = redis.call('HINCRBY', kept, 'number', 1)
  elseif type(last) == 'table' then
    if string.sub(last.err, 1, 3) ~= 'OOM' then return last end
    -- A take of an item is still allowed; after that the number can be written.
    last, counted = tonumber(redis.call('HGET', kept, 'number') or 0) + 1, 0
  end
  if last > number then
    redis.pcall('HINCRBY', kept, 'number', -counted)
    -- An older call comes too late, over a connection that was given up: no client reads the reply.
    if last > number + 1 then return {'stale'} end
    local replied, reply = unpack(redis.call('HMGET', kept, 'replied', 'reply'))
    replied = tonumber(replied or '')
    if not reply or not replied or math.abs(replied) ~= number then return {'again', {'done'}} end
    if replied == number then return {'again', {'done', reply}} end
    local ok, again = pcall(cmsgpack.unpack, reply)
    if not ok or type(again) ~= 'table' or #again == 0 then return {'stale'} end
    return {'again', again}
  end
  local ok, reply = pcall(operation)
  local kind = type(reply)
  if not ok or (kind == 'table' and reply.err) then
    if last == 1 then -- this call made it, and it would stay
      redis.pcall('DEL', kept)
    else
      redis.pcall('HINCRBY', kept, 'number', -counted)
    end
    return kind == 'table' and reply or redis.error_reply(reply)
  end
  if last == 1 and kind == 'table' and reply[1] == 'missing' then -- nothing was done, so it may be repeated
    redis.pcall('DEL', kept)
    return reply
  end
  if last < number or counted == 0 then redis.pcall('HSET', kept, 'number', number) end
  if kind == 'string' then
    redis.pcall('HSET', kept, 'replied', number, 'reply', reply)
  elseif kind == 'nil' then
    redis.pcall('HSET', kept, 'replied', -number, 'reply', cmsgpack.pack({'declined'}))
  elseif kind == 'number' or reply.is_asked_for then -- a bare `done`
  elseif reply[1] == 'done' and #reply == 2 and type(reply[2]) == 'string' then
    if reply.place then
      redis.pcall('HSET', kept, 'replied', number, 'reply', reply[2], 'place', reply.place)
    else
      redis.pcall('HSET', kept, 'replied', number, 'reply', reply[2])
    end
  elseif #reply > 1 or reply[1] ~= 'done' then
    local place = reply.place
    reply.place = nil
    redis.pcall('HSET', kept, 'replied', -number, 'reply', cmsgpack.pack(reply))
    if place then redis.pcall('HSET', kept, 'place', place) end
  end
  if keep or last == 1 then redis.pcall('PEXPIRE', kept, keep or 60000) end
  return reply
end
