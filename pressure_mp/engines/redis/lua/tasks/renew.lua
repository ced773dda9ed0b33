-- renew: renew the lease of a process that has taken tasks or has workers, and return the leases of other processes.
-- keys: presence workers
-- args: owner lease holds says texts
--   holds  1: the owner has tasks
--   says   1: `texts` are of its workers, with a zero byte between them; '' when it has none. 0: they stay as they are
-- replies: done bells now owners | missing
-- uses: storage notices changes groups transitions
-- `owners` are names, each followed by the end of its lease in milliseconds.
if not settings then return {'missing'} end
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
return finish('done', now, redis.call('HGETALL', presence))
