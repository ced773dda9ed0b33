-- delete: remove the queue and every key of it (specification: Delete).
-- keys: bound data producer consumer producer_free consumer_free produced_messages produced_bytes consumed_messages consumed_bytes not_full closed meta done finished rejected users producer_granted producer_holder consumer_granted consumer_holder deleting waiting in_flight deliveries presence returned producers fetched readers uploads chunks
-- args: client ticket mode turn lease conn
-- replies: done holder holder | busy producer state holder holder | busy consumer state holder holder | missing
-- uses: role line bound storage
-- once: mending
-- full: yes
-- `done` and `busy` name the connections (or '') that wait with a role of this queue: wake them. After `busy` in mode
-- wait the queue no longer exists for other clients; the caller only waits for its roles, so that all clients that were
-- in line before are told. In mode now it waits for no client of this package, and nothing is done unless all of it can
-- be done. A queue with a key of a wrong type among these is removed at once: no client can be waited for there.
local client, ticket, mode, turn = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local p_free, p_granted, p_holder = KEYS[5], KEYS[18], KEYS[19]
local c_free, c_granted, c_holder = KEYS[6], KEYS[20], KEYS[21]

local exists = is_there(KEYS[1])
-- A foreign client that deletes the queue leaves the note of a deletion, but not the mark that it is closed.
local begun = redis.call('EXISTS', KEYS[22], KEYS[12]) == 2
if turn ~= 'first' and (exists or not begun) then return {'done', '', ''} end
if not exists and not begun then return {'missing'} end

local others = {[p_holder] = 'hash', [c_holder] = 'hash', [KEYS[23]] = 'hash', [KEYS[22]] = 'string'}
for _, key in ipairs({p_free, p_granted, p_holder, c_free, c_granted, c_holder, KEYS[11], KEYS[12], KEYS[22], KEYS[23]}) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and kind ~= (others[key] or 'list') then
    redis.call('UNLINK', unpack(KEYS, 1, #KEYS - 1))
    return {'done', '', ''}
  end
end

local entry = leave_line(KEYS[23], turn, ticket)
local p_state = read_role('producer', turn, p_free, p_granted, p_holder, ticket, ARGV[5])
local c_state = read_role('consumer', turn, c_free, c_granted, c_holder, ticket, ARGV[5])
local function is_taken(state)
  return state == 'foreign' or ((state == 'ours' or state == 'reserved') and mode == 'wait')
end
local blocked = (is_taken(p_state) and 'producer') or (is_taken(c_state) and 'consumer')
local wake_p = p_state == 'ours' and redis.call('HGET', p_holder, 'conn') or ''
local wake_c = c_state == 'ours' and redis.call('HGET', c_holder, 'conn') or ''
if blocked then
  if mode == 'now' then
    give_back(p_state, p_free, p_granted, p_holder)
    give_back(c_state, c_free, c_granted, c_holder)
    return {'busy', blocked, 'foreign'}
  end
  if exists then
    redis.call('SET', KEYS[22], ticket)
    redis.call('DEL', KEYS[1])
    redis.call('LPUSH', KEYS[11], '0')
    redis.call('LPUSH', KEYS[12], '0', '0')
  end
  if not is_taken(p_state) then
    hold(p_state, p_free, p_granted, p_holder, ticket, client, ARGV[6], ARGV[5])
  end
  if not is_taken(c_state) then
    hold(c_state, c_free, c_granted, c_holder, ticket, client, ARGV[6], ARGV[5])
  end
  -- A holder of this package only waits: its role can be taken away, and goes to the first in line.
  if wake_p ~= '' then give_back('mine', p_free, p_granted, p_holder) end
  if wake_c ~= '' then give_back('mine', c_free, c_granted, c_holder) end
  local caller = {client = client, ticket = ticket, mode = mode, turn = turn, lease = ARGV[5]}
  local state = blocked == 'producer' and p_state or c_state
  local reply = busy(blocked, state, KEYS[23], entry, caller)
  reply[4], reply[5] = wake_p, wake_c
  return reply
end
redis.call('UNLINK', unpack(KEYS, 1, #KEYS - 1))
return {'done', wake_p, wake_c}
