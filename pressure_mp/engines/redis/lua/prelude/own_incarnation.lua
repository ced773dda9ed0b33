-- In the place of `incarnation`, for the queues of other disciplines than the protocol's: only this
-- package knows their keys, so nobody deletes such a queue and leaves what is kept beside it.
local ADOPT_FIRST = nil

local function is_strange()
  return false
end

local function mark() end
