-- What the short way of `take` can do is done; else `take` goes on.
local owner, call, limit, _, ttr, tube, _, _, _, turn, lease = unpack(ARGV, 1, 11)
if limit == '1' and tube == '' then
  local take = taking(KEYS[1], owner, call, ttr, lease, turn == 'again' and KEYS[2])
  if take then return take() end
end
