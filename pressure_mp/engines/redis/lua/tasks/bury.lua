-- bury: a taken task is put aside.
-- args: id owner call ttl tube shift error edit data digest whole
--   ttl  milliseconds until it is gone; 0 for never
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | missing
-- uses: storage life find taker
-- once: yes
if not settings then return {'missing'} end
sweep()
local id, owner, call, ttl, tube, shift, error, edit, data, digest, whole = unpack(ARGV, 1, 11)
local task, refusal = held(id, owner, call)
if not task then return refusal end
if not is_known(id, digest) then return finish('changed') end
if error ~= '' then task.error = error end
turn(task, 'B', lifetime(tonumber(ttl)), shift == '1' and tube or nil)
return finish_with(task, edit, data, whole)
