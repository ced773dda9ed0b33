-- await: return the end of a task; the caller waits for it.
-- args: id ticket mode whole
--   mode   wait | now: whether the caller will wait
--   whole  1: return the data also while the task is not processed
-- replies: done bells outcome record data kept result token | unfinished bells record data | absent bells | missing
-- uses: storage notices changes limits groups transitions find
-- once: yes
-- `outcome` is processed, buried, killed or dropped; the record is '' when the task is gone. `kept`: 1 if a result is
-- kept.
if not settings then return {'missing'} end
make_due_transitions()
local id, ticket = ARGV[1], ARGV[2]
local task = find(id)
local record = task and pack(task) or ''
local outcome = redis.call('HGET', outcomes, ticket)
local kept = kept_of(id)
local function told(how)
  local data = task and redis.call('HGET', payloads, id) or ''
  if not kept then return finish('done', how, record, data, 0, '', '') end
  return finish('done', how, record, data, 1, kept.data, kept.token)
end
if outcome then
  redis.call('HDEL', outcomes, ticket)
  return told(string.match(outcome, ' (.*)$'))
end
if not task then return kept and told(OUTCOME[kept.outcome]) or finish('absent') end
if task.state == 'Z' or task.state == 'D' then return told('processed') end
if task.state == 'B' then return told('buried') end
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
return finish('unfinished', record, ARGV[4] == '1' and redis.call('HGET', payloads, id) or '')
