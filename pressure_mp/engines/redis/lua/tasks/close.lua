-- close: shut the queue down for everyone, for good.
-- replies: done bells | missing
-- uses: storage notices changes limits groups transitions
-- once: yes
-- full: yes
-- durable: yes
if not settings then return {'missing'} end
wakes_all = true
note(set, meta, 'closed', '1')
return finish('done')
