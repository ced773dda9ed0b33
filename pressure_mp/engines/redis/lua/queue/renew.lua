-- renew: a process says that it is there, as one that has items in flight or as a producer, and hears of the others.
-- keys: bound consumed_bytes presence producers producer_free producer_claim producer_holder consumer_free consumer_claim consumer_holder waiting closed not_full producer consumer uploads item
-- args: owner lease consumes produces ticket...
--   ticket  of each of its operations that waits
-- replies: done now consumers producers again tickets due | missing
-- uses: bound incarnation role line keepers renewal
-- `consumers` and `producers` are names, each followed by the end of its lease in milliseconds; `again` and `tickets`
-- are as of `keepers`. There is something to do for those who are `due`.
if is_strange(KEYS[1], KEYS[2]) then return ADOPT_FIRST end
return renewal({unpack(KEYS)}, ARGV[1], ARGV[2], ARGV[3], ARGV[4], {unpack(ARGV, 5)})
