-- close: shut the queue down for everyone, for good.
-- replies: done bells | missing
-- uses: storage notices changes groups transitions
-- once: yes
-- full: yes
-- durable: yes
if not settings then return {'missing'} end
local entries = redis.call('ZRANGE', waiting, 0, -1)
wakes_any = true
note(set, meta, 'closed', '1')
flush()
ring(entries)
return finish('done')
