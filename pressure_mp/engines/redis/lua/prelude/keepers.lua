-- Who keeps the roles, for the caller to see whether they live. What ran out is ended: a lease, the time of a
-- grant. A role is its lists, its holder and the key that names who had it last: {free, claim, holder, last}. Returns
-- in how many milliseconds to look again, 0 when something was ended just now, since only after this call it is seen
-- who has the role next; the tickets of the holders, and of all who may have been granted a role that nobody came
-- for; and the roles whose token is in no list, though no client ever had it.
local function keepers(producer, consumer, waiting, lease)
  local now = milliseconds()
  local line = candidates(waiting, now)
  local again, tickets, unclaimed = tonumber(lease), {}, {}
  local function look(name, role)
    local state, held, ends = standing(name, '', role[1], role[2], role[3], '', lease)
    local last = role[4]
    if state == 'foreign' and redis.call('EXISTS', last) == 0 then unclaimed[#unclaimed + 1] = name end
    if not ends then return end
    for _, ticket in ipairs(held == 'promised' and line[name] or {held}) do tickets[#tickets + 1] = ticket end
    -- A reader whose lease has ended is for the caller to end.
    again = math.min(again, ends == 0 and 0 or math.max(ends - now + 1, ends < now and 50 or 1))
  end
  look('producer', producer)
  look('consumer', consumer)
  return again, tickets, unclaimed
end
