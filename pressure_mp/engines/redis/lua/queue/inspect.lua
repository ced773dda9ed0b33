-- inspect: who holds what, who waits, and how full the queue is. Changes nothing.
-- keys: bound data closed not_full producer producer_free producer_claim producer_holder consumer consumer_free consumer_claim consumer_holder waiting deleting
-- args: limit
--   limit  how many of those who stand in line are told
-- replies: done now bound length closed space producer consumer line damage | missing
-- uses: role line bound storage contents
-- A role is {last, place, ticket, client, since, until, lease}; its place is free, promised, held or
-- foreign. The line is tickets and entries, in no order. The bound is '' of a queue whose deletion
-- waits for a role. The damage is '' for none.
local bound = read_bound(KEYS[1])
if not bound and redis.call('EXISTS', KEYS[14], KEYS[3]) < 2 then return {'missing'} end

local function look(last, free, claim, holder)
  local held = redis.call('HMGET', holder, 'ticket', 'client', 'since', 'until', 'lease')
  local place = 'foreign'
  if redis.call('LLEN', free) > 0 then
    place = 'free'
  elseif redis.call('LLEN', claim) > 0 then
    place = 'promised'
  elseif held[1] then
    place = 'held'
  end
  local reply = {redis.call('GET', last) or '', place}
  for i = 1, 5 do reply[i + 2] = held[i] or '' end
  return reply
end

return {
  'done', string.format('%d', milliseconds()), redis.call('GET', KEYS[1]) or '',
  size(KEYS[2]), redis.call('EXISTS', KEYS[3]), redis.call('LLEN', KEYS[4]),
  look(KEYS[5], KEYS[6], KEYS[7], KEYS[8]), look(KEYS[9], KEYS[10], KEYS[11], KEYS[12]),
  redis.call('HRANDFIELD', KEYS[13], ARGV[1], 'WITHVALUES'),
  lacks_contents(KEYS[2]) and 'no contents' or '',
}
