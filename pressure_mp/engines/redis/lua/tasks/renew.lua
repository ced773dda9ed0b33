-- renew: renew the lease of a process that has taken tasks or has workers, and return the leases of other processes.
-- keys: presence workers
-- args: owner lease holds says texts watched...
--   holds    1: the owner has tasks
--   says     1: `texts` are of its workers, with a zero byte between them; '' when it has none. 0: they stay as they are
--   watched  id and number of the take, of each task that the owner may have lost
-- replies: done bells now owners problem... | missing
-- uses: storage notices changes limits groups transitions find
-- `owners` are names, each followed by the end of its lease in milliseconds. A problem is the place of a watched task
-- that the owner does not have, from 1 on, and the reason: absent, foreign, or its state.
if not settings then return {'missing'} end
redis.call('HDEL', KEYS[1], '') -- needs no memory: so the commands after it are allowed when the server has none
make_due_transitions()
local presence, workers = KEYS[1], KEYS[2]
local owner, lease, holds, says, texts = unpack(ARGV, 1, 5)
local is_new = says == '1' and redis.call('HGET', workers, owner) ~= texts
if holds == '1' or texts ~= '' then redis.call('HSET', presence, owner, string.format('%d', now + lease)) end
if is_new and texts ~= '' then
  redis.call('HSET', workers, owner, texts)
elseif is_new then
  redis.call('HDEL', workers, owner)
end
local problems = {}
for i = 6, #ARGV, 2 do
  local task = find(ARGV[i])
  local problem = not task and 'absent' or task.state ~= 'T' and task.state
    or (task.owner ~= owner or task.call ~= tonumber(ARGV[i + 1])) and 'foreign'
  if problem then
    problems[#problems + 1] = i / 2 - 2
    problems[#problems + 1] = problem
  end
end
return finish('done', now, redis.call('HGETALL', presence), unpack(problems))
