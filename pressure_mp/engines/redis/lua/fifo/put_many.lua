-- put_many: append as many items as there is space for, in order (specification: Put).
-- keys: data bound closed producer producer_free not_full produced_messages produced_bytes producer_granted producer_holder waiting consumer_free consumer_granted consumer_holder
-- args: number item... client ticket mode turn lease conn
--   number  how many items there are
--   mode    wait | try | now
-- replies: done taken | full space length | busy producer state | busy consumer state length | closed | missing
-- uses: role line bound count space looks
-- once: yes
-- durable: yes
-- `taken` is 1 or more. After `full` in mode wait the caller has the producer role and waits for
-- space with it.
local number = tonumber(ARGV[1])
local client, ticket, mode, turn, lease, conn = unpack(ARGV, number + 2, number + 7)
local data, not_full = KEYS[1], KEYS[6]
local free, granted, holder = KEYS[5], KEYS[9], KEYS[10]

local entry = leave_line(KEYS[11], turn, ticket)
local state, held = read_role('producer', turn, free, granted, holder, ticket, lease)
local bound = read_bound(KEYS[2])
local closed = redis.call('EXISTS', KEYS[3]) == 1
if not bound or closed then
  give_back(state, free, granted, holder)
  return {closed and bound and 'closed' or 'missing'}
end
local length = redis.call('LLEN', data)
local signs = redis.call('LLEN', not_full)
local at_bound = bound > 0 and length >= bound
local overdue = is_overdue(state, holder, signs == 0 and not at_bound, lease)
local lost = overdue or (signs == 0 and is_sign_lost(bound, at_bound, KEYS[12], KEYS[13], KEYS[14]))
local full = at_bound or (signs == 0 and not lost)
local left = bound > 0 and bound - length - number or math.huge
if state == 'foreign' or (state == 'ours' and full) or yields('producer', state, mode, left, KEYS[11], held) then
  local caller = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease}
  return busy('producer', state, KEYS[11], entry, caller)
end
if full then
  -- A reader may have handed out some of the items.
  if mode == 'now' and at_bound and is_read(KEYS[14], data) then
    give_back(state, free, granted, holder)
    return {'busy', 'consumer', 'reserved', length}
  end
  -- The reference's get sets the token for space even on an over-filled queue; with it, no client could wait.
  if at_bound and signs > 0 then redis.call('DEL', not_full) end
  if mode ~= 'wait' then
    give_back(state, free, granted, holder)
  else
    hold(state, free, granted, holder, ticket, client, conn, lease)
    redis.call('SET', KEYS[4], client)
  end
  return {'full', 'space', length}
end

local taken, size = bound > 0 and math.min(number, bound - length) or number, 0
for i = 2, taken + 1 do size = size + #ARGV[i] end
local total, problem = count(KEYS[7], KEYS[8], size, taken)
if not total then return problem end
redis.call('LPUSH', data, unpack(ARGV, 2, taken + 1))
redis.call('SET', KEYS[4], client)
if bound > 0 and length + taken >= bound then
  redis.call('DEL', not_full)
elseif signs == 0 then
  redis.call('LPUSH', not_full, '1')
end
give_back(state, free, granted, holder)
return {'done', taken}
