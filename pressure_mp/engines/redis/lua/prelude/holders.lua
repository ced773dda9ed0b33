-- Find the holders of the roles, so that the caller can check whether they live. Ends leases, and times of grants, that
-- are over. A role is its lists, its holder and the key with its last holder: {free, granted, holder, last}. Returns in
-- how many milliseconds to check again, 0 when a role was given back just now, since its next holder is only known
-- after this call; the tickets of the holders, and of all clients that may have been granted a role and have not used
-- it; and the roles whose token is in no list, though no client ever had it.
local function holders(producer, consumer, waiting, lease)
  local now = milliseconds()
  local line = candidates(waiting, now)
  local again, tickets, never_held = tonumber(lease), {}, {}
  local function look(name, role)
    local state, held, ends = read_role(name, '', role[1], role[2], role[3], '', lease)
    local last = role[4]
    if state == 'foreign' and redis.call('EXISTS', last) == 0 then never_held[#never_held + 1] = name end
    if not ends then return end
    for _, ticket in ipairs(held == 'granted' and line[name] or {held}) do tickets[#tickets + 1] = ticket end
    -- The caller has to end the reservation of a reader whose lease has ended.
    again = math.min(again, ends == 0 and 0 or math.max(ends - now + 1, ends < now and 50 or 1))
  end
  look('producer', producer)
  look('consumer', consumer)
  return again, tickets, never_held
end
