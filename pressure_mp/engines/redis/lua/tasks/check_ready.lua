-- check_ready: return whether a client in line, which sent a take behind its wait, should have that done now.
-- replies: done bells | empty bells next | missing
-- uses: storage notices changes limits groups transitions ready
-- `empty` and `next` are as in take. Tasks that become ready now are for the first in line, which is woken.
if not settings then return {'missing'} end
local number = (settings.limits and number_ready or number_in_line)('')
local is_reason = settings.closed or (number > 0 and not is_paused('') and not limits.used_until(''))
make_due_transitions()
if is_reason then return finish('done') end
return finish('empty', limits.wait('', false))
