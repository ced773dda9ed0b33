-- renew: renew the leases of a process, as an owner of items in flight or as a producer, and return all other leases.
-- keys: bound consumed_bytes presence producers producer_free producer_granted producer_holder consumer_free consumer_granted consumer_holder waiting closed not_full producer consumer uploads item
-- args: owner lease consumes produces ticket...
--   ticket  of each of its waiting operations
-- replies: done now consumers producers again tickets due | missing
-- uses: bound incarnation role line holders renewal
-- `consumers` and `producers` are names, each followed by the end of its lease in milliseconds; `again` and `tickets`
-- are as in `holders`. `due` are the tickets of operations that have something to do.
if has_former_keys(KEYS[1], KEYS[2]) then return ADOPT_FIRST end
return renewal({unpack(KEYS)}, ARGV[1], ARGV[2], ARGV[3], ARGV[4], {unpack(ARGV, 5)})
