-- snapshot: list the items of the present round, and of later rounds, in the order of service.
-- keys: bound data
-- args: limit
--   limit  how many items at most
-- replies: done length keys items current | missing
-- uses: bound storage
-- The first `current` items belong to the present round.
if not read_bound(KEYS[1]) then return {'missing'} end
local round = redis.call('HGET', clock, 'round') or '0'
local members = redis.call('ZRANGE', KEYS[2], 0, ARGV[1] - 1)
local arrivals, keys_told = {}, {}
for i, member in ipairs(members) do
  arrivals[i], keys_told[i] = string.sub(member, 1, 8), string.sub(member, 9)
end
local told = {}
for i, arrival in ipairs(arrivals) do told[i] = redis.call('HGET', items, arrival) end
return {'done', size(KEYS[2]), keys_told, told, redis.call('ZCOUNT', KEYS[2], round, round)}
