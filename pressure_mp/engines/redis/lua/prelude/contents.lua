-- Whether entries are there whose items are gone: where these are in one key, none is.
local function lacks_contents() return false end
