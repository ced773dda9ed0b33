-- bury: bury a taken task.
-- args: id owner call ttl tube shift report edit data digest whole result token
--   ttl  milliseconds until it is removed; 0 for never
--   result  its result; '' if the taker gives none
--   token   of the content of the result, if that is in chunks; the reply is lost if it does not exist
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | lost bells | missing
-- uses: storage notices changes limits groups transitions find taker
-- once: yes
-- full: yes
if not settings then return {'missing'} end
make_due_transitions()
local id, owner, call, ttl, tube, shift, report, edit, data, digest, whole, result, token =
  unpack(ARGV, 1, 13)
local task, refusal = find_taken(id, owner, call)
if not task then return refusal end
if not has_content(token) then return finish('lost') end
if not is_known(id, digest) then return finish('changed') end
if report ~= '' then task.report = report end
change_state(task, 'B', lifetime(tonumber(ttl)), shift == '1' and tube or nil)
set_result(id, result, token)
return finish_with(task, edit, data, whole)
