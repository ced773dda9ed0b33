-- keys: meta records payloads ready tubes behind groups due expiry taken bundles shelf counts wake waiting awaited outcomes results notices inboxes times chunks uniques
-- item: wake
-- Tasks: `payloads` has the data of each, `records` the record, see pressure_mp/engines/redis/task_records.py; a task
-- without a record is as it was put: ready, its id is the number of its arrival, and all else has the default. A task
-- is also in the sets for its state. In sorted sets with equal scores, whose order is the order of their members'
-- bytes:
--   ready   R: priority, arrival, id
--   tubes   R with a tube: the tube, a zero byte, and the same
--   behind  R with a key that is not in line, and so in neither of these: see `groups`; and R of a paused tube that
--           was in the way of a take, and so is held: as with an empty key, with its place in `ready`
--   taken   T: the end of the owner's name, which is random; number of the take, id. Tasks that were
--           taken together are a bundle, with a zero byte and its number for the id: as long as
--           none of them changes alone. `bundles` has how many they are, 1 if none of them
--           has a tube, a result or a waiting client, when that ends, the owner, and their ids.
--   shelf   B and D: the letter, since when, arrival, id
-- and with the time at which the state ends by itself as score:
--   due     W and T: then the task is ready; of a bundle, after a zero byte, its member of `taken`
--   expiry  Z, and R and B with a ttl: then it is gone; at '+inf' never
-- `uniques` has by unique key: 1 while a task holds it, else 0; until when it is kept from others even if that task ends;
-- and the id of that task.
-- `wake` has one element when a waiter should call again: a task is ready, or will be soon.

-- The most transitions that are due that one call makes.
local MOST_DUE = 100
-- A waiter calls again after so many milliseconds, even if it is not woken.
local TICK = 900
-- The time as a zombie of tasks that stay.
local FOR_GOOD = -1
-- Milliseconds for which the outcome of a task is kept for a client that waited for it.
local KEPT = 60000

local FORMAT = '>c1c8I8I8I8I8I4I4I8i8sssss'
local BUNDLE = '>I2I1I8s'

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Read the queue's options, and the last numbers given; nil when the queue does not exist.
local settings
local kept = redis.call('HMGET', meta, 'settings', 'closed', 'seq', 'id', 'named', 'pauses')
if kept[1] then
  local ttr, ttl, zombie, keep, limit, per_key, bound = struct.unpack('>I8I8i8I8I8I8I8', kept[1])
  settings = {
    ttr = ttr, ttl = ttl, zombie = zombie, keep = keep == 1, limit = limit, per_key = per_key, bound = bound,
    closed = kept[2], seq = tonumber(kept[3] or '0'), id = tonumber(kept[4] or '0'),
    named = kept[5], -- a put gave an id, which may be another task's
    -- By tube: P, it is paused; R, it was resumed, or has no limit any more, and may have tasks that are held. A queue that
    -- only has limits has this table too; `limits` has the limits of tubes, `key_limits` the limits of each key of a tube.
    pauses = kept[6] and {},
  }
  for state, text in string.gmatch(kept[6] or '', '([PRLK])(%Z*)%z') do
    local number, per, tube = string.match(text, '^(%d+) (%d+) (.*)$')
    local name = state == 'L' and 'limits' or state == 'K' and 'key_limits'
    if name then
      settings[name] = settings[name] or {}
      settings[name][tube] = {number = tonumber(number), per = tonumber(per)}
    else
      settings.pauses[text] = state
    end
  end
end

-- The priority of most tasks, and the end of the record of a task that is ready for the first time, without an end,
-- tube or inbox.
local USUAL, NOTHING = '\128\0\0\0\0\0\0\0', string.rep('\0', 37)

-- Whether no take gets a task of this tube; '': of the whole queue.
local function is_paused(tube)
  local pauses = settings.pauses
  return pauses and (pauses[''] == 'P' or pauses[tube] == 'P')
end

-- Return the time of the put of a task without a record, in eight bytes: its id begins with the milliseconds.
local function created(id)
  return struct.pack('>I8', tonumber(string.sub(id, 1, -4)) or 0)
end

-- Make the record of a task without one.
local function unrecorded(id)
  local moment = created(id)
  return 'R' .. USUAL .. struct.pack('>I8', tonumber(id) or 0) .. moment .. moment .. NOTHING
end

-- Whether a number is the present time: not when the clock was set back.
local function is_on_time(seq)
  return seq < time[1] * 1000000 + time[2] + 1000
end

-- Numbers grow with the time, so that the numbers of a deleted queue are not used again.
local function next_seq()
  return math.max(settings.seq + 1, time[1] * 1000000 + time[2])
end

-- Return the beginning of the members of `taken` of one process, or of one of its takes.
local function taken_prefix(owner, call)
  return string.sub(owner, -8) .. (call and struct.pack('>I8', call) or '')
end

-- Return the end of a time that begins now, 0 when it never ends.
local function lifetime(milliseconds)
  return milliseconds > 0 and now + milliseconds or 0
end

-- Return in how many milliseconds the next task becomes ready, '' when none will by itself.
local function next_due()
  local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
  return first[2] and math.max(first[2] - now, 0) + 1 or ''
end
