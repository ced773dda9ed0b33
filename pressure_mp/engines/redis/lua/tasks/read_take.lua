-- read_take: return the tasks that a process has by one take whose reply was lost.
-- args: owner call
-- replies: done bells now task... | missing
-- uses: storage notices changes limits groups transitions
-- A task is its id, its record and its data.
if not settings then return {'missing'} end
make_due_transitions()
local reply = finish('done', now)
for _, member in ipairs(beginning(taken, taken_prefix(ARGV[1], tonumber(ARGV[2])), 0, -1)) do
  for _, id in ipairs(bundle_taken(member) and ids_bundled(member) or {id_taken(member)}) do
    local at = #reply
    reply[at + 1], reply[at + 2] = id, redis.call('HGET', records, id)
    reply[at + 3] = redis.call('HGET', payloads, id)
  end
end
return reply
