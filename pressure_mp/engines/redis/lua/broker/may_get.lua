-- may_get: find the queues in which a get would not wait. Changes nothing.
-- replies: done answers
-- uses: bound
-- The keys are the keys of each queue in turn: its bound, the mark that it is closed, and the list that has an element
-- while there is an item. An answer is 1 or 0.
local found = {}
for at = 1, #KEYS, 3 do
  local bound, closed, item = unpack(KEYS, at, at + 2)
  local may = not is_there(bound) or redis.call('EXISTS', closed, item) > 0
  found[#found + 1] = may and 1 or 0
end
return {'done', found}
