-- So many items were put in front of those that a reader reserved, if one did.
local function note_in_front(holder, number)
  if number > 0 and redis.call('HEXISTS', holder, 'call') == 1 then redis.call('HINCRBY', holder, 'front', number) end
end
