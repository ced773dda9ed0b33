-- task_done: count one item that was got as done.
-- keys: bound produced_messages consumed_messages done finished consumed_bytes
-- replies: done unfinished | excess | missing
-- uses: bound tasks incarnation
-- once: yes
-- full: yes
if has_former_keys(KEYS[1], KEYS[6]) then return ADOPT_FIRST end
if not read_bound(KEYS[1]) then return {'missing'} end
if unfinished(KEYS[2], KEYS[3], KEYS[4]) <= 0 then return {'excess'} end
return {'done', finish(1, KEYS[2], KEYS[3], KEYS[4], KEYS[5])}
