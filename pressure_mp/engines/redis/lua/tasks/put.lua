-- put: add tasks that have all but their id and their data in common.
-- args: ids delay ttl priority tube ticket number task...
--   ids       time64 | auto_increment: how a task without an id gets one
--   delay     milliseconds before it is ready; 0 for none
--   ttl       milliseconds for which it is ready; '' for the queue's own
--   priority  in eight bytes
--   ticket    of one who waits until the task is processed; '' for nobody
--   task      id and data of each; an id can be ''
-- replies: done bells ids | exists bells id state | closed bells | missing
-- uses: storage
-- once: yes
-- durable: yes
if not settings then return {'missing'} end
sweep()
if settings.closed then return answer('closed') end
local kind, delay, ttl, priority, tube, ticket = unpack(ARGV, 1, 6)
local number = tonumber(ARGV[7])
local tasks = {unpack(ARGV, 8, 7 + 2 * number)}
-- Numbers grow with the time, so that those of a deleted queue do not come again.
local seq = math.max(settings.seq + 1, time[1] * 1000000 + time[2])
local counter = settings.id
local state, ends = 'R', lifetime(ttl ~= '' and tonumber(ttl) or settings.ttl)
if delay ~= '0' then state, ends = 'W', now + delay end

-- The records differ in the number of the arrival only.
local head = state .. priority
local tail = struct.pack('>I8I8I8I8I8', now, now, ends, 0, 0) .. tube .. '\0\0'
local told, data, places = noted(set, records), noted(set, payloads), {}
local ids, seen = {}, {}
for i = 1, 2 * number, 2 do
  local id = tasks[i]
  if id == '' then
    repeat
      if kind == 'auto_increment' then
        counter = counter + 1
        id = string.format('%.0f', counter)
      else
        id = string.format('%.0f', seq)
        if seen[id] or redis.call('HGET', records, id) then seq = seq + 1 end
      end
    until not seen[id] and not redis.call('HGET', records, id)
  else
    local there = seen[id] and state or redis.call('HGET', records, id)
    if there then
      set = {}
      return answer('exists', id, string.sub(there, 1, 1))
    end
  end
  seen[id] = true
  ids[#ids + 1] = id
  local arrival = struct.pack('>I8', seq)
  told[i], told[i + 1] = id, head .. arrival .. tail
  data[i], data[i + 1] = id, tasks[i + 1]
  places[i], places[i + 1] = 0, priority .. arrival .. id
  seq = seq + 1
end
if state == 'R' then
  added[ready] = places
  if tube ~= '' then
    local tubed = noted(added, tubes)
    for i = 1, 2 * number, 2 do
      tubed[i], tubed[i + 1] = 0, tube_of(tube) .. places[i + 1]
    end
  end
end
if ends > 0 then
  local timed = noted(added, state == 'R' and expiry or due)
  for i, id in ipairs(ids) do timed[2 * i - 1], timed[2 * i] = ends, id end
end
if state == 'R' or ends < now + TICK then notice(tube, number) end
count('X', state, tube, #ids)
note(set, meta, 'seq', string.format('%.0f', seq - 1))
note(set, meta, 'id', string.format('%.0f', counter))
if ticket ~= '' then note(set, awaited, ids[1], ticket) end
return answer('done', ids)
