-- release: give a taken task back: it is ready, or waits; or it is buried, if it was delivered too often.
-- args: id owner call delay ttl priority tube shift report edit data digest whole result token unbegun
--   delay     milliseconds before it is ready; 0 for none
--   ttl       milliseconds for which it is ready; '' for the queue's own
--   priority  in eight bytes; '' leaves it
--   report    the report on it; '' keeps the last one
--   result  its result; '' if the taker gives none
--   token   of the content of the result, if that is in chunks; the reply is lost if it does not exist
--   unbegun  1 if no handler began it: the take counts as no delivery
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | lost bells | missing
-- uses: storage notices changes limits groups transitions find taker
-- once: yes
-- full: yes
if not settings then return {'missing'} end
make_due_transitions()
local id, owner, call, delay, ttl, priority, tube, shift, report, edit, data, digest, whole, result, token, unbegun =
  unpack(ARGV, 1, 16)
local task, refusal = find_taken(id, owner, call)
if not task then return refusal end
if not has_content(token) then return finish('lost') end
if not is_known(id, digest) then return finish('changed') end
-- forward: if only_checks then return finish('may') end
if priority ~= '' then task.priority = priority end
if unbegun == '1' then task.deliveries = task.deliveries - 1 end
give_back_task(task, report, tonumber(delay), ttl ~= '' and tonumber(ttl) or nil, shift == '1' and tube or nil)
set_result(id, result, token)
return finish_with(task, edit, data, whole)
