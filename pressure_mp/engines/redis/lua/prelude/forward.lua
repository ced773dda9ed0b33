-- Put on one queue, and settle a delivery of another one, in one step. Before this are two functions: `settle`, which is
-- a script that acknowledges, of SETTLE_KEYS keys and SETTLE_ARGS arguments; and `put`, a script that puts. They may be
-- of the same queue, so each reads the state when it is called. Both have the same time, so nothing becomes due in
-- between. `settle` is called twice: if it `only_checks`, it returns what refuses it, or `may`, and has acknowledged
-- nothing. In its file are lines, behind the mark "forward:", that are code here and comments otherwise.
--
-- Keys: the keys of `settle`, the keys of `put`, the key of the lane. Arguments: the arguments of `settle`, the arguments
-- of `put`, the number of the call. A reply contains the replies of the functions: {refused, settle} |
-- {declined, check, put} | {done, check, put, settle}.
local function part(all, first, last)
  local some = {}
  for i = first, last do some[#some + 1] = all[i] end
  return some
end

local its_keys, its_args = part(KEYS, 1, SETTLE_KEYS), part(ARGV, 1, SETTLE_ARGS)
local checked = settle(its_keys, its_args, true)
if checked.err and string.sub(checked.err, 1, 5) == 'ADOPT' then return {'refused', {'late'}} end
if checked.err then return checked end
if checked[1] ~= 'may' then return {'refused', checked} end
local said = put(part(KEYS, SETTLE_KEYS + 1, #KEYS - 1), part(ARGV, SETTLE_ARGS + 1, #ARGV - 1))
if said.err then return said end
if said[1] ~= 'done' then return {'declined', checked, said} end
return {'done', checked, said, settle(its_keys, its_args, false)}
