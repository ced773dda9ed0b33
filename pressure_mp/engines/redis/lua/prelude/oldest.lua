-- Count an item that was taken by a caller that is served at once. Returns it; the server's error; or nil when its
-- content may be in chunks, which `get` handles: then it is back in its place. `signed` says whether the token for
-- space exists, and `last` is the client that got an item last.
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
