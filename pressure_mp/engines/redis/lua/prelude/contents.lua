-- Whether there are entries without items: never, where both are in one key.
local function lacks_contents() return false end
