-- keepers: who keeps the roles, for the caller to see whether they live. What ran out is ended: a lease, the time of a grant.
-- keys: bound deleting producer_free producer_claim producer_holder consumer_free consumer_claim consumer_holder waiting producer consumer
-- args: lease
-- replies: done again tickets unclaimed | missing
-- uses: role line keepers
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then return {'missing'} end
return {'done', keepers({KEYS[3], KEYS[4], KEYS[5], KEYS[10]}, {KEYS[6], KEYS[7], KEYS[8], KEYS[11]}, KEYS[9], ARGV[1])}
