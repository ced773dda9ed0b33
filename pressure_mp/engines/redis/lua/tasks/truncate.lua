-- truncate: remove tasks, whatever state they are in.
-- args: limit
--   limit  how many tasks at most
-- replies: done bells number | missing
-- uses: storage life shelf
-- once: yes
-- None is left when the number is 0.
if not settings then return {'missing'} end
sweep()
local limit = tonumber(ARGV[1])
local ids, seen = {}, {}
local function gather(members, id_of)
  for _, member in ipairs(members) do
    local id = id_of(member)
    if not seen[id] and #ids < limit then
      seen[id] = true
      ids[#ids + 1] = id
    end
  end
end
local function itself(member) return member end
gather(redis.call('ZRANGE', ready, 0, limit - 1), function(member) return id_in(member, '') end)
if #ids == 0 then gather(redis.call('ZRANGE', due, 0, limit - 1), itself) end
if #ids == 0 then gather(redis.call('ZRANGE', expiry, 0, limit - 1), itself) end
if #ids == 0 then gather(redis.call('ZRANGE', taken, 0, limit - 1), id_taken) end
if #ids == 0 then gather(redis.call('ZRANGE', shelf, 0, limit - 1), id_shelved) end
local found = #ids > 0 and redis.call('HMGET', records, unpack(ids)) or {}
for i, id in ipairs(ids) do vanish(read(id, found[i]), 'killed') end
return answer('done', #ids)
