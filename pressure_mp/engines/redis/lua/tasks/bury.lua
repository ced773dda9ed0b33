-- bury: a taken task is put aside.
-- args: id owner call ttl tube shift error edit data digest whole result token
--   ttl  milliseconds until it is gone; 0 for never
--   result  what came of it; '' if the taker says nothing
--   token   of its content, if that is in chunks; lost: it is not there
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | lost bells | missing
-- uses: storage hearing told groups life find taker
-- once: yes
-- full: yes
if not settings then return {'missing'} end
sweep()
local id, owner, call, ttl, tube, shift, error, edit, data, digest, whole, result, token =
  unpack(ARGV, 1, 13)
local task, refusal = held(id, owner, call)
if not task then return refusal end
if not has_content(token) then return finish('lost') end
if not is_known(id, digest) then return finish('changed') end
if error ~= '' then task.error = error end
turn(task, 'B', lifetime(tonumber(ttl)), shift == '1' and tube or nil)
say_result(id, result, token)
return finish_with(task, edit, data, whole)
