-- Return the id in a member of `shelf`.
local function id_shelved(member)
  return string.sub(member, 18)
end
