-- holders: return the holders of the roles, so that the caller checks whether they live. Ends leases, and grants, that
-- are over.
-- keys: bound deleting producer_free producer_granted producer_holder consumer_free consumer_granted consumer_holder waiting producer consumer
-- args: lease
-- replies: done again tickets never_held | missing
-- uses: role line holders
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then return {'missing'} end
return {'done', holders({KEYS[3], KEYS[4], KEYS[5], KEYS[10]}, {KEYS[6], KEYS[7], KEYS[8], KEYS[11]}, KEYS[9], ARGV[1])}
