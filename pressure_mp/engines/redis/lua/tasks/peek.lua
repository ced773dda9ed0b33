-- peek: return a task.
-- args: id
-- replies: done bells record data | absent bells | missing
-- uses: storage notices changes limits groups transitions find
if not settings then return {'missing'} end
make_due_transitions()
local task = find(ARGV[1])
if not task then return finish('absent') end
return finish('done', pack(task), redis.call('HGET', payloads, task.id))
