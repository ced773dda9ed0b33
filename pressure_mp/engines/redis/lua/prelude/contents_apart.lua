-- Replaces `contents` for the disciplines that keep the order of items in one key, and the items in another.
local function lacks_contents(data)
  return redis.call('ZCARD', data) > redis.call('HLEN', items)
end
