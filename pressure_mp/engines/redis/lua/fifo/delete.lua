-- delete: remove the queue and every key of it (specification: Delete).
-- keys: bound data producer consumer producer_free consumer_free produced_messages produced_bytes consumed_messages consumed_bytes not_full closed meta done finished rejected users producer_claim producer_holder consumer_claim consumer_holder deleting
-- args: client ticket mode turn lease conn
-- replies: done holder holder | busy producer | busy consumer | missing
-- uses: role
-- `done` names the connections (or '') that wait with a role of this queue: wake them. After
-- `busy` in mode wait the queue no longer exists for others; only its roles are waited for. In
-- mode now nothing is done unless all of it can be done.
local client, ticket, mode, turn = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local p_free, p_claim, p_holder = KEYS[5], KEYS[18], KEYS[19]
local c_free, c_claim, c_holder = KEYS[6], KEYS[20], KEYS[21]

local exists = redis.call('EXISTS', KEYS[1]) == 1
local begun = redis.call('EXISTS', KEYS[22]) == 1
if turn ~= 'first' and (exists or not begun) then return {'done', '', ''} end
if not exists and not begun then return {'missing'} end

local p_state = standing('producer', turn, p_free, p_claim, p_holder, ticket)
local c_state = standing('consumer', turn, c_free, c_claim, c_holder, ticket)
local blocked = (p_state == 'foreign' and 'producer') or (c_state == 'foreign' and 'consumer')
if blocked then
  if mode == 'now' then
    give_back(p_state, p_free, p_claim, p_holder)
    give_back(c_state, c_free, c_claim, c_holder)
    return {'busy', blocked}
  end
  if exists then
    redis.call('SET', KEYS[22], ticket)
    redis.call('DEL', KEYS[1])
    redis.call('LPUSH', KEYS[11], '0')
    redis.call('LPUSH', KEYS[12], '0', '0')
  end
  if p_state ~= 'foreign' and p_state ~= 'ours' then
    hold(p_state, p_free, p_claim, p_holder, ticket, client, ARGV[6], ARGV[5])
  end
  if c_state ~= 'foreign' and c_state ~= 'ours' then
    hold(c_state, c_free, c_claim, c_holder, ticket, client, ARGV[6], ARGV[5])
  end
  return {'busy', blocked}
end
local wake_p = redis.call('HGET', p_holder, 'conn') or ''
local wake_c = redis.call('HGET', c_holder, 'conn') or ''
redis.call('DEL', unpack(KEYS))
return {'done', wake_p, wake_c}
