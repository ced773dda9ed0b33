-- release: give back the roles that the caller holds or was granted, after a wait that was broken off.
-- keys: producer_free producer_granted producer_holder consumer_free consumer_granted consumer_holder waiting
-- args: ticket turn lease
-- replies: done
-- uses: role
-- once: yes
-- full: yes
local p_state = read_role('producer', ARGV[2], KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[3])
local c_state = read_role('consumer', ARGV[2], KEYS[4], KEYS[5], KEYS[6], ARGV[1], ARGV[3])
redis.call('HDEL', KEYS[7], ARGV[1])
give_back(p_state, KEYS[1], KEYS[2], KEYS[3])
give_back(c_state, KEYS[4], KEYS[5], KEYS[6])
return {'done'}
