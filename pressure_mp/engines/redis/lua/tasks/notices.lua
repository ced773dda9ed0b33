-- notices: return the notices of an inbox since its client's last call.
-- args: inbox seen limit size mode
--   seen   the number of the last notice that its client has; the notices up to it are removed
--   limit  how many notices at most
--   size   how many bytes of results at most, unless it is one
--   mode   wait | now: whether the caller will wait when there is none
-- replies: done bells notice... | empty bells | lost bells | due | missing
-- uses: storage notices
-- A notice is its number, the id, the letter of the event, how often the task was delivered, the report on it, 1 if a
-- result is kept, the result, and the token of its content. `lost`: the inbox is gone. `due`: transitions or removals
-- are due; nothing was done, call sweep first.
if not settings then return {'missing'} end
for _, key in ipairs({due, expiry, times}) do
  if redis.call('ZCOUNT', key, '-inf', now) > 0 then return {'due'} end
end
local name, seen, limit, size, mode = unpack(ARGV, 1, 5)
local box = only_inbox(name)
if not box then return {'lost', ''} end
redis.call('HLEN', results)
seen, limit, size = tonumber(seen), tonumber(limit), tonumber(size)
local start, after = from_number(name), from_number(name, seen + 1)
local function between(first, last, most)
  return redis.call('ZRANGE', notices, '[' .. first, '(' .. last, 'BYLEX', 'LIMIT', 0, most)
end
if seen > 0 then drop_seen(name, between(start, after, -1)) end
redis.call('ZADD', times, string.format('%d', now + box.lease), 'i' .. name)

local members = between(after, start .. string.rep('\255', 9), limit)
local waits_now = #members == 0 and mode == 'wait' and name or ''
if waits_now ~= box.ticket then
  box.ticket = waits_now
  redis.call('HSET', inboxes, name, pack_inbox(box))
end
if #members == 0 then return {'empty', ''} end
local SOME = 16 -- results that are read at a time: few calls, and little that is read in vain
local found, kept = {'done', ''}, {}
for i, member in ipairs(members) do
  if i % SOME == 1 then
    local ids = {}
    for k = i, math.min(i + SOME - 1, #members) do
      local _, _, _, _, at, ends = read_notice(name, members[k])
      ids[#ids + 1] = string.sub(members[k], at, ends)
    end
    kept = redis.call('HMGET', results, unpack(ids))
  end
  local number, deliveries, event, _, at, ends = read_notice(name, member)
  local is_end = event ~= 'T' and event ~= 'G' and event ~= 'A'
  local result = is_end and kept[(i - 1) % SOME + 1] and read_kept(kept[(i - 1) % SOME + 1])
  if result then
    size = size - #result.data
    if size < 0 and i > 1 then break end
  end
  local at_end = #found
  found[at_end + 1], found[at_end + 2], found[at_end + 3] = number, string.sub(member, at, ends), event
  found[at_end + 4], found[at_end + 5] = deliveries, string.sub(member, ends + 2)
  found[at_end + 6], found[at_end + 7] = result and 1 or 0, result and result.data or ''
  found[at_end + 8] = result and result.token or ''
end
return found
