-- Try the fast path of `take`; if it does not apply, `take` goes on.
do
  local owner, call, limit, _, ttr, tube, _, _, _, turn, lease = unpack(ARGV, 1, 11)
  if limit == '1' and tube == '' then
    local at_once = take_one(KEYS[1], owner, call, ttr, lease, turn == 'again' and KEYS[2])
    if at_once then return at_once end
  end
end
