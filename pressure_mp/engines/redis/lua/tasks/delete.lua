-- delete: remove the queue and every key of it.
-- keys: meta bound records payloads ready tubes behind groups due expiry taken bundles shelf counts wake woken waiting awaited outcomes results notices inboxes times chunks uniques presence workers users
-- replies: done | missing
-- uses: bound
-- once: mending
-- full: yes
-- One of the two may be lost. The bound says the discipline.
if redis.call('EXISTS', KEYS[2]) == 1 and not is_there(KEYS[2]) then return {'missing'} end
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then return {'missing'} end
redis.call('UNLINK', unpack(KEYS, 1, #KEYS - 1))
return {'done'}
