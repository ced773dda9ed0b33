-- Replaces `incarnation` for queues of other disciplines than the protocol's: only this package knows their keys, so no
-- client deletes such a queue and leaves other keys of it.
local ADOPT_FIRST = nil

local function has_former_keys()
  return false
end

local function mark() end
