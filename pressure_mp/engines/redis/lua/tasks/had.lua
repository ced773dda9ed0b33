-- had: what a process has by one take, whose reply did not come through.
-- args: owner call
-- replies: done bells now task... | missing
-- uses: storage life
-- A task is its id, its record and its data.
if not settings then return {'missing'} end
sweep()
local owner, call = ARGV[1], tonumber(ARGV[2])
local ids = beginning(taken, hold(owner, call), 0, -1)
for i, member in ipairs(ids) do ids[i] = id_taken(member) end
local reply = answer('done', now)
for _, id in ipairs(ids) do
  local at = #reply
  reply[at + 1], reply[at + 2] = id, redis.call('HGET', records, id)
  reply[at + 3] = redis.call('HGET', payloads, id)
end
return reply
