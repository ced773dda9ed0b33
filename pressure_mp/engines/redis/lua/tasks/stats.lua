-- stats: how many tasks went which way so far, and the oldest of those that are ready.
-- replies: done bells now created oldest closed counts | missing
-- uses: storage hearing told groups life
-- `oldest` is when that task was put, '' when none is ready. `counts` are ways, with a tube or without,
-- each followed by how many.
if not settings then return {'missing'} end
sweep()
-- The oldest of each priority is its first; the first 100 priorities are looked at.
local oldest, from = '', '-'
for _ = 1, 100 do
  local member = redis.call('ZRANGE', ready, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not member then break end
  local task = read('', record_of(id_in(member, '')))
  -- The server may have removed what was kept of it.
  if task and (oldest == '' or task.created < oldest) then oldest = task.created end
  from = '(' .. string.sub(member, 1, 8) .. LAST
end
local created = redis.call('HGET', meta, 'created')
return finish('done', now, created, oldest, settings.closed and 1 or 0, redis.call('HGETALL', counts))
