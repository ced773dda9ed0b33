-- put_many: append as many items as there is space for, in order (specification: Put).
-- keys: data bound closed producer producer_free not_full produced_messages produced_bytes producer_claim producer_holder waiting consumer_free consumer_claim consumer_holder
-- args: number writer period item... client ticket mode turn lease conn
--   number    how many items there are; 0: only to reserve space
--   writer    for whom the space behind them is reserved; or empty
--   period    its number for this reservation
--   mode      wait | try | now
-- replies: done taken left wanted | full space length | busy producer whose | busy consumer whose length | closed | missing
-- uses: role line bound count space looks
-- once: yes
-- durable: yes
-- `taken` is 1 or more, if there are any. `left` is how much space is reserved for the writer, which has the producer role as long as
-- that is not 0: nobody else puts, and it may accept so many items before it puts them. `wanted`: somebody waits for
-- that, or looks. The writer releases the space then; only it knows what it has accepted. Where `left` is 0 it says that
-- there is space, but others put too. After `full` in mode wait the caller has the producer role and waits for
-- space with it.
local number = tonumber(ARGV[1])
local client, ticket, mode, turn, lease, conn = unpack(ARGV, number + 4, number + 9)
local writer = ARGV[2]
local data, not_full = KEYS[1], KEYS[6]
local free, claim, holder = KEYS[5], KEYS[9], KEYS[10]

local entry = leave_line(KEYS[11], turn, ticket)
local writes = writer ~= '' and redis.call('HGET', holder, 'ticket') == writer
local state = writes and 'mine' or standing('producer', turn, free, claim, holder, ticket, lease)
local bound = read_bound(KEYS[2])
local closed = redis.call('EXISTS', KEYS[3]) == 1
if not bound or closed then
  give_back(state, free, claim, holder)
  return {closed and bound and 'closed' or 'missing'}
end
local length = redis.call('LLEN', data)
local signs = redis.call('LLEN', not_full)
local at_bound = bound > 0 and length >= bound
local overdue = is_overdue(state, holder, signs == 0 and not at_bound, lease)
local lost = overdue or (signs == 0 and is_sign_lost(bound, at_bound, KEYS[12], KEYS[13], KEYS[14]))
local full = at_bound or (signs == 0 and not lost)
if state == 'foreign' or state == 'reserved' or (state == 'ours' and (mode ~= 'now' or full)) then
  local who = {client = client, ticket = ticket, mode = mode, turn = turn, lease = lease}
  return busy('producer', state, KEYS[11], entry, who)
end
if full then
  -- A reader may have handed out some of the items.
  if mode == 'now' and at_bound and is_read(KEYS[14], data) then
    give_back(state, free, claim, holder)
    return {'busy', 'consumer', 'reserved', length}
  end
  -- The reference's get sets the sign even on an over-filled queue; with it, nobody could wait.
  if at_bound and signs > 0 then redis.call('DEL', not_full) end
  if mode ~= 'wait' then
    give_back(state, free, claim, holder)
  else
    hold(state, free, claim, holder, ticket, client, conn, lease)
    redis.call('SET', KEYS[4], client)
  end
  return {'full', 'space', length}
end

local taken, size = bound > 0 and math.min(number, bound - length) or number, 0
for i = 4, taken + 3 do size = size + #ARGV[i] end
local total, problem = count(KEYS[7], KEYS[8], size, taken)
if not total then return problem end
local last = writer ~= '' and redis.call('GET', KEYS[4])
if taken > 0 then redis.call('LPUSH', data, unpack(ARGV, 4, taken + 3)) end
redis.call('SET', KEYS[4], client)
if bound > 0 and length + taken >= bound then
  redis.call('DEL', not_full)
elseif signs == 0 then
  redis.call('LPUSH', not_full, '1')
end
local left = writer ~= '' and bound > 0 and math.max(bound - length - taken, 0) or 0
if left > 0 then
  local wanted = redis.call('HEXISTS', holder, 'looked') == 1
    or (redis.call('HLEN', KEYS[11]) > 0 and #candidates(KEYS[11], milliseconds()).producer > 0)
  local process = string.match(client, '^(.*:)%d+:[^:]*$') or client
  if writes or (not wanted and (not last or string.sub(last, 1, #process) == process)) then
    hold(state, free, claim, holder, writer, client, '', tonumber(lease))
    redis.call('HSET', holder, 'period', ARGV[3])
    return {'done', taken, left, wanted and 1 or 0}
  end
end
give_back(state, free, claim, holder)
return {'done', taken, 0, left > 0 and 1 or 0}
