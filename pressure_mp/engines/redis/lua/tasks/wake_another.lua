-- wake_another: wake another waiter in place of the caller, whose wait for a task was broken off.
-- keys: woken
-- args: entry tube
--   entry  the entry of the caller in line; its ticket, if it waits for space and does not know the entry; '' if it
--          does not wait in line
-- replies: done bells
-- uses: storage notices changes limits groups transitions
if not settings then return {'done', {}} end
redis.call('DEL', KEYS[1])
if string.find(ARGV[1], '\0', 1, true) then
  redis.call('ZREM', waiting, ARGV[1])
elseif ARGV[1] ~= '' then
  putters.remove(ARGV[1])
end
local is_left = limits.end_watch(ARGV[2])
if is_left or redis.call('ZCARD', ready) > 0 or redis.call('ZCARD', due) > 0 then wake_waiter(ARGV[2]) end
return finish('done')
