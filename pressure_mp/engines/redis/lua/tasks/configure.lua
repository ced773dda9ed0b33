-- configure: replace the options of the queue, if they are what the caller says.
-- args: was options ttr ttl zombie keep max_deliveries per_key maxsize
--   was      the options that are replaced, as text
--   options  the new ones, as text; the numbers are the same
-- replies: done bells options | missing
-- uses: storage notices changes limits groups transitions
-- once: yes
-- full: yes
-- durable: yes
if not settings then return {'missing'} end
make_due_transitions()
local options = redis.call('HGET', meta, 'options')
if options ~= ARGV[1] then return finish('done', options) end
note(set, meta, 'options', ARGV[2])
note(set, meta, 'settings', struct.pack('>I8I8i8I8I8I8I8', unpack(ARGV, 3, 9)))
wakes_all = tonumber(ARGV[9]) ~= settings.bound
local before, per_key = settings.per_key, tonumber(ARGV[8])
local function is_full(group, most)
  return most > 0 and group.taken >= most
end
if per_key ~= before then
  settings.per_key = per_key
  -- Only a key of which tasks are taken can have as many as there may be. Such a task is in no bundle.
  local members, first, some = redis.call('ZRANGE', taken, 0, -1), 1, 500
  while first <= #members do
    local ids = {}
    for i = first, math.min(first + some - 1, #members) do
      if not bundle_taken(members[i]) then ids[#ids + 1] = id_taken(members[i]) end
    end
    for _, task in ipairs(read_tasks(ids, {})) do
      if task.key ~= '' then
        local group = group_of(task.tube, task.key, true)
        group.is_changed = is_full(group, before) ~= is_full(group, per_key)
      end
    end
    first = first + some
  end
end
return finish('done', ARGV[2])
