-- Whether the token for space is missing though there is space, and no client will set it: it was removed. A queue
-- without a bound always has space. In a queue with a bound, a consumer of another implementation may be at work, which
-- has taken an item and sets the token next.
local function is_sign_lost(bound, at_bound, consumer_free, granted, holder)
  if at_bound then return false end
  return bound == 0 or redis.call('EXISTS', consumer_free, granted, holder) > 0
end
