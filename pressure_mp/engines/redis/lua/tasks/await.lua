-- await: whether a task is processed; one who asks waits for it.
-- keys: woken
-- args: id ticket mode whole
--   mode   wait | now: whether the caller will wait
--   whole  1: return the data also while the task is not processed
-- replies: done bells outcome record data | unfinished bells record data | absent bells | missing
-- uses: storage life find
-- once: yes
-- `outcome` is processed, buried, killed or dropped; the record is '' when the task is gone.
if not settings then return {'missing'} end
sweep()
redis.call('DEL', KEYS[1])
local id, ticket = ARGV[1], ARGV[2]
local task = find(id)
local record = task and pack(task) or ''
local outcome = redis.call('HGET', outcomes, ticket)
local ended = outcome or task and string.find('ZDB', task.state, 1, true)
local data = task and (ended or ARGV[4] == '1') and redis.call('HGET', payloads, id) or ''
if outcome then
  redis.call('HDEL', outcomes, ticket)
  return finish('done', string.match(outcome, ' (.*)$'), record, data)
end
if not task then return finish('absent') end
if task.state == 'Z' or task.state == 'D' then return finish('done', 'processed', record, data) end
if task.state == 'B' then return finish('done', 'buried', record, data) end
local others = {}
for other in string.gmatch(redis.call('HGET', awaited, id) or '', '[^ ]+') do
  if other ~= ticket then others[#others + 1] = other end
end
if ARGV[3] == 'wait' then others[#others + 1] = ticket end
if #others > 0 then
  redis.call('HSET', awaited, id, table.concat(others, ' '))
else
  redis.call('HDEL', awaited, id)
end
return finish('unfinished', record, data)
