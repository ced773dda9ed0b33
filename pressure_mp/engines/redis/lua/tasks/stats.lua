-- stats: how many tasks went which way so far, and the oldest of those that are ready.
-- replies: done bells now created oldest closed counts | missing
-- uses: storage
-- `oldest` is when that task was put, '' when none is ready. `counts` are ways, with a tube or without,
-- each followed by how many.
if not settings then return {'missing'} end
sweep()
local created = redis.call('HGET', meta, 'created')
return answer('done', now, created, oldest(), settings.closed and 1 or 0, redis.call('HGETALL', counts))
