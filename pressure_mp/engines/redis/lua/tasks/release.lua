-- release: a taken task is given back: it is ready, or waits; or it is buried, if it was delivered too often.
-- args: id owner call delay ttl priority tube shift error edit data digest whole
--   delay     milliseconds before it is ready; 0 for none
--   ttl       milliseconds for which it is ready; '' for the queue's own
--   priority  in eight bytes; '' leaves it
--   error     what went wrong; '' leaves what was said before
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | missing
-- uses: storage life find taker
-- once: yes
if not settings then return {'missing'} end
sweep()
local id, owner, call, delay, ttl, priority, tube, shift, error, edit, data, digest, whole = unpack(ARGV, 1, 13)
local task, refusal = held(id, owner, call)
if not task then return refusal end
if not is_known(id, digest) then return finish('changed') end
if priority ~= '' then task.priority = priority end
give_back(task, error, tonumber(delay), ttl ~= '' and tonumber(ttl) or nil, shift == '1' and tube or nil)
return finish_with(task, edit, data, whole)
