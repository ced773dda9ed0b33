-- renew: renew the lease of a process that has taken tasks, and return the leases of other processes.
-- keys: presence
-- args: owner lease holds watched...
--   holds    1: the owner has tasks
--   watched  id and number of the take, of each task that the owner may have lost
-- replies: done bells now owners problem... | missing
-- uses: storage notices changes groups transitions find
-- `owners` are names, each followed by the end of its lease in milliseconds. A problem is the place of a watched task
-- that the owner does not have, from 1 on, and the reason: absent, foreign, or its state.
if not settings then return {'missing'} end
make_due_transitions()
if ARGV[3] == '1' then redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', now + ARGV[2])) end
local problems = {}
for i = 4, #ARGV, 2 do
  local task = find(ARGV[i])
  local problem = not task and 'absent' or task.state ~= 'T' and task.state
    or (task.owner ~= ARGV[1] or task.call ~= tonumber(ARGV[i + 1])) and 'foreign'
  if problem then
    problems[#problems + 1] = i / 2 - 1
    problems[#problems + 1] = problem
  end
end
return finish('done', now, redis.call('HGETALL', KEYS[1]), unpack(problems))
