-- Note that so many items were put in front of the items that a reader reserved, if there is a reservation.
local function note_in_front(holder, number)
  if number > 0 and redis.call('HEXISTS', holder, 'call') == 1 then redis.call('HINCRBY', holder, 'front', number) end
end
