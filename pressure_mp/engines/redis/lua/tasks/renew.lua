-- renew: renew the lease of a process that has taken tasks, and return the leases of other processes.
-- keys: presence
-- args: owner lease holds
--   holds  1: the owner has tasks
-- replies: done bells now owners | missing
-- uses: storage notices changes groups transitions
-- `owners` are names, each followed by the end of its lease in milliseconds.
if not settings then return {'missing'} end
make_due_transitions()
if ARGV[3] == '1' then redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', now + ARGV[2])) end
return finish('done', now, redis.call('HGETALL', KEYS[1]))
