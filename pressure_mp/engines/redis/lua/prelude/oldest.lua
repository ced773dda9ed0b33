-- An item that was taken out, by one who is served at once, is counted. Returns it; the server's error;
-- or nil when its content may be in chunks, which `get` knows of: then it is where it was. `signed` says
-- whether there is a sign that there is space, and `last` who got an item last.
local function count_oldest(item, data, bound, not_full, signed, messages, bytes, consumer, last, client)
  if string.byte(item) == 250 then
    redis.call('RPUSH', data, item)
    return nil
  end
  local total, problem = count(messages, bytes, #item, 1)
  if not total then
    redis.call('RPUSH', data, item)
    return problem
  end
  if last ~= client then redis.call('SET', consumer, client) end
  if not signed and (bound == 0 or redis.call('LLEN', data) < bound) then redis.call('LPUSH', not_full, '1') end
  return item
end
