-- keepers: who keeps the roles, for the caller to see whether they live. What ran out is ended: a lease, the time of a grant.
-- keys: bound deleting producer_free producer_claim producer_holder consumer_free consumer_claim consumer_holder waiting
-- args: lease
-- replies: done again tickets | missing
-- uses: role line
-- `tickets` are those of the holders, and of all who may have been granted a role that nobody came
-- for. `again` says in how many milliseconds to look again: 0 when something was ended just now,
-- since only after this call it is seen who has the role next.
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then return {'missing'} end
local lease, now = ARGV[1], milliseconds()
local line = candidates(KEYS[9], now)
local again, tickets = tonumber(lease), {}
local function look(name, free, claim, holder)
  local _, held, ends = standing(name, '', free, claim, holder, '', lease)
  if not ends then return end
  for _, ticket in ipairs(held == 'promised' and line[name] or {held}) do tickets[#tickets + 1] = ticket end
  -- A reader whose lease has ended is for the caller to end.
  again = math.min(again, ends == 0 and 0 or math.max(ends - now + 1, ends < now and 50 or 1))
end
look('producer', KEYS[3], KEYS[4], KEYS[5])
look('consumer', KEYS[6], KEYS[7], KEYS[8])
return {'done', again, tickets}
