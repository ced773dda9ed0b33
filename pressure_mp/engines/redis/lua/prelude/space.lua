-- Whether the sign of space is missing though there is space, and nobody will set it: a server took it,
-- or somebody removed it. A queue without a bound always has space. Of one with a bound a consumer of
-- another implementation may be at work, which has an item out and sets the sign next.
local function is_sign_lost(bound, at_bound, consumer_free, claim, holder)
  if at_bound then return false end
  return bound == 0 or redis.call('EXISTS', consumer_free, claim, holder) > 0
end
