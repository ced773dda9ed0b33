-- look: whether one who waits in line, with a take sent behind that, has reason to have it done now.
-- replies: done bells | empty bells next | missing
-- uses: storage hearing told groups life ready
-- `empty` and `next` are as of take. What becomes ready now is for the first in line, who is woken.
if not settings then return {'missing'} end
local is_reason = settings.closed or number_ready('') > 0
sweep()
if is_reason then return finish('done') end
return finish('empty', next_due())
