-- free_roles: give back the roles that a client that has ended held, or may have been granted in line.
-- keys: producer_free producer_granted producer_holder consumer_free consumer_granted consumer_holder waiting
-- args: ticket lease
-- replies: done
-- uses: role line
-- A living client that was granted a role meanwhile may lose it here: it joins the line again.
local ticket, lease = ARGV[1], ARGV[2]
local entry = redis.call('HGET', KEYS[7], ticket)
local role = read_entry(entry or '')
local p_state, p_held = read_role('producer', '', KEYS[1], KEYS[2], KEYS[3], ticket, lease)
local c_state, c_held = read_role('consumer', '', KEYS[4], KEYS[5], KEYS[6], ticket, lease)
if role == 'producer' and p_held == 'granted' then p_state = 'granted' end
if role == 'consumer' and c_held == 'granted' then c_state = 'granted' end
redis.call('HDEL', KEYS[7], ticket)
give_back(p_state, KEYS[1], KEYS[2], KEYS[3])
give_back(c_state, KEYS[4], KEYS[5], KEYS[6])
return {'done'}
