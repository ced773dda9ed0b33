-- close: close the queue for everyone, for good (specification: Close).
-- keys: bound closed data producer not_full produced_messages consumed_messages done finished producer_free producer_granted producer_holder consumer_free consumer_granted consumer_holder waiting meta returned uploads consumed_bytes
-- args: once immediate client ticket mode turn lease conn
--   once       1: a queue that is closed already is an error
--   immediate  1: drop the queued items, which count as done
-- replies: done holder holder | busy producer state | busy consumer state | closed | missing
-- uses: role line bound tasks storage incarnation
-- once: yes
-- full: yes
-- durable: yes
-- `done` names the connections (or '') that wait with a role of this queue: wake them.
local client, ticket, turn = ARGV[3], ARGV[4], ARGV[6]
local p_free, p_granted, p_holder = KEYS[10], KEYS[11], KEYS[12]
local c_free, c_granted, c_holder = KEYS[13], KEYS[14], KEYS[15]

if ARGV[2] == '1' and has_former_keys(KEYS[1], KEYS[20]) then return ADOPT_FIRST end
local entry = leave_line(KEYS[16], turn, ticket)
local p_state = read_role('producer', turn, p_free, p_granted, p_holder, ticket, ARGV[7])
local c_state = read_role('consumer', turn, c_free, c_granted, c_holder, ticket, ARGV[7], KEYS[3])
local function give_back_roles()
  give_back(p_state, p_free, p_granted, p_holder)
  give_back(c_state, c_free, c_granted, c_holder)
end
local function taken(name)
  local caller = {client = client, ticket = ticket, mode = ARGV[5], turn = turn, lease = ARGV[7]}
  return busy(name, 'foreign', KEYS[16], entry, caller)
end
redis.call('ZCARD', KEYS[19])
if not read_bound(KEYS[1]) then
  give_back_roles()
  return {'missing'}
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  if ARGV[1] == '1' then
    give_back_roles()
    return {'closed'}
  end
else
  if p_state == 'foreign' then return taken('producer') end
  redis.call('LPUSH', KEYS[2], '0', '0')
  redis.call('SET', KEYS[4], client)
end
if ARGV[2] == '1' then
  -- A foreign consumer that saw an item must still find it, and a reader the items that it reserved.
  if c_state == 'foreign' or c_state == 'reserved' then
    give_back(p_state, p_free, p_granted, p_holder)
    return taken('consumer')
  end
  -- Items in flight are dropped too, if they are requeued.
  redis.call('HSET', KEYS[17], 'dropping', '1')
  redis.call('DEL', KEYS[18])
  local dropped = size(KEYS[3])
  if dropped > 0 then
    finish(dropped, KEYS[6], KEYS[7], KEYS[8], KEYS[9])
    clear(KEYS[3])
    for _, token in ipairs(redis.call('ZRANGE', KEYS[19], '+inf', '+inf', 'BYSCORE')) do
      redis.call('ZADD', KEYS[19], 0, token)
    end
    if redis.call('LLEN', KEYS[5]) == 0 then redis.call('LPUSH', KEYS[5], '1') end
  end
end
give_back_roles()
return {'done', redis.call('HGET', p_holder, 'conn') or '', redis.call('HGET', c_holder, 'conn') or ''}
