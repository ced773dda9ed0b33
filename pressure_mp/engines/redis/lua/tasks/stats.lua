-- stats: return the counts of all transitions so far, and the time of the oldest ready task.
-- replies: done bells now created oldest closed counts pauses limits maxsize putting | missing
-- uses: storage notices changes limits groups transitions
-- `oldest` is the time of its put, '' when none is ready. `counts` are transitions, with a tube or without, each
-- followed by its number. `pauses` are as in `meta`. `limits` are the tube, the number, the time, how many are used of
-- that, and until when that are all, 0 if they are not, and
-- whether it is a limit of each key, of each limit. `putting` is how many clients wait for space.
if not settings then return {'missing'} end
make_due_transitions()
-- The oldest of each priority is its first; only the first 100 priorities are read.
local oldest, from = '', '-'
for _ = 1, 100 do
  local member = redis.call('ZRANGE', ready, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not member then break end
  local task = read('', record_of(id_in(member, '')))
  -- The server may have removed its record.
  if task and (oldest == '' or task.created < oldest) then oldest = task.created end
  from = '(' .. string.sub(member, 1, 8) .. LAST
end
local held_of, told = {}, {}
for tube in pairs(settings.pauses or {}) do held_of[tube] = true end
for tube in pairs(settings.limits or {}) do
  held_of[tube] = true
  local limit = limits.of(tube)
  for _, one in ipairs({tube, limit.number, limit.per, limit.used, limits.used_until(tube) or 0, 0}) do
    told[#told + 1] = one
  end
end
for tube, limit in pairs(settings.key_limits or {}) do
  for _, one in ipairs({tube, limit.number, limit.per, 0, 0, 1}) do told[#told + 1] = one end
end
for tube in pairs(held_of) do
  local member = beginning(behind, held(tube, ''), 0, 1)[1]
  local task = member and read('', record_of(id_behind(member)))
  if task and (oldest == '' or task.created < oldest) then oldest = task.created end
end
local created = redis.call('HGET', meta, 'created')
return finish('done', now, created, oldest, settings.closed and 1 or 0, redis.call('HGETALL', counts),
  kept[6] or '', told, settings.bound,
  redis.call('ZLEXCOUNT', waiting, '[' .. tube_of(''), '(' .. tube_of('') .. LAST))
