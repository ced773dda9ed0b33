-- workers: return the leases of the processes that take tasks, and what these say of their workers.
-- keys: presence workers
-- replies: done bells now owners texts | missing
-- uses: storage notices changes limits groups transitions
-- `owners` are as for `renew`; `texts` are names, each followed by its texts.
if not settings then return {'missing'} end
make_due_transitions()
return finish('done', now, redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]))
