-- inspect: return the holders of the roles, the clients in line, and the counts of the queue. Changes nothing.
-- keys: bound data closed not_full producer producer_free producer_granted producer_holder consumer consumer_free consumer_granted consumer_holder waiting deleting in_flight deliveries consumed_bytes
-- args: limit
--   limit  how many clients in line at most
-- replies: done now bound length closed space producer consumer line damage | missing
-- uses: role line bound storage contents incarnation
-- A role is {last, place, ticket, client, since, until, lease}; its place is free, granted, held or foreign. The line
-- is tickets and entries, in no order. The bound is '' for a queue whose deletion waits for a role. The damage is ''
-- for none.
local bound, text = read_bound(KEYS[1])
if not bound and redis.call('EXISTS', KEYS[14], KEYS[3]) < 2 then return {'missing'} end

local function look(last, free, granted, holder)
  local held = redis.call('HMGET', holder, 'ticket', 'client', 'since', 'until', 'lease')
  local place = 'foreign'
  if redis.call('LLEN', free) > 0 then
    place = 'free'
  elseif redis.call('LLEN', granted) > 0 then
    place = 'granted'
  elseif held[1] then
    place = 'held'
  end
  local reply = {redis.call('GET', last) or '', place}
  for i = 1, 5 do reply[i + 2] = held[i] or '' end
  return reply
end

-- Whether items were taken, and are neither in flight nor acknowledged.
local function lacks_taken(in_flight, records)
  local some = redis.call('HRANDFIELD', records, 500, 'WITHVALUES')
  for i = 2, #some, 2 do
    local deliveries = tonumber(string.match(some[i], '^(%d+) %d+ %d+ ') or 0)
    if deliveries > 0 and redis.call('HEXISTS', in_flight, some[i - 1]) == 0 then return true end
  end
  return false
end

local damage = ''
if lacks_contents(KEYS[2]) then
  damage = 'no contents'
elseif ARGV[1] ~= '0' and not has_former_keys(KEYS[1], KEYS[17]) and lacks_taken(KEYS[15], KEYS[16]) then
  damage = 'none in flight'
end
return {
  'done', string.format('%d', milliseconds()), text or '',
  size(KEYS[2]), redis.call('EXISTS', KEYS[3]), redis.call('LLEN', KEYS[4]),
  look(KEYS[5], KEYS[6], KEYS[7], KEYS[8]), look(KEYS[9], KEYS[10], KEYS[11], KEYS[12]),
  redis.call('HRANDFIELD', KEYS[13], ARGV[1], 'WITHVALUES'),
  damage,
}
