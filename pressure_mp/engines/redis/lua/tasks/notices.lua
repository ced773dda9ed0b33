-- notices: what an inbox has heard since its client asked last.
-- args: inbox seen limit size ticket mode
--   seen   the number of the last notice that its client has; those up to it are removed
--   limit  how many notices at most
--   size   how many bytes of results at most, unless it is one
--   mode   wait | now: whether the caller will wait when there is none
-- replies: done bells notice... | empty bells | lost bells | missing
-- uses: storage told life
-- A notice is its number, the id, the letter of the event, how often the task was delivered, its last error,
-- 1 if a result is kept, the result, and the token of its content.
-- `lost`: the inbox is gone.
if not settings then return {'missing'} end
sweep()
local name, seen, limit, size, ticket, mode = unpack(ARGV, 1, 6)
local box = inbox_of(name)
if not box then return finish('lost') end
seen, limit, size = tonumber(seen), tonumber(limit), tonumber(size)
end_at('i', name, now + box.lease)
local start = from_number(name)
local function between(first, last, most)
  return redis.call('ZRANGE', notices, '[' .. first, '(' .. last, 'BYLEX', 'LIMIT', 0, most)
end
drop_notices(name, between(start, from_number(name, seen + 1), -1))

local members = between(from_number(name, seen + 1), start .. LAST, limit)
if box.ticket ~= '' then box.ticket, box.is_changed = '', true end
if #members == 0 then
  if mode == 'wait' then box.ticket, box.is_changed = ticket, true end
  return finish('empty')
end
local found = {}
for i, member in ipairs(members) do
  local number, deliveries, event, _, at = struct.unpack('>I8I4c1c1', member, #name + 2)
  local last = string.find(member, '\0', at, true)
  local id = string.sub(member, at, last - 1)
  local kept = event ~= 'T' and event ~= 'A' and kept_of(id)
  if kept then
    size = size - #kept.data
    if size < 0 and i > 1 then break end
  end
  local told = {number, id, event, deliveries, string.sub(member, last + 1)}
  for k = 1, 5 do found[#found + 1] = told[k] end
  found[#found + 1] = kept and 1 or 0
  found[#found + 1] = kept and kept.data or ''
  found[#found + 1] = kept and kept.token or ''
end
local reply = finish('done')
for i, part in ipairs(found) do reply[2 + i] = part end
return reply
