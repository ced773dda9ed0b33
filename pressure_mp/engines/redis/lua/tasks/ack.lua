-- ack: acknowledge a processed task: it is removed, or stays as a zombie or as done.
-- args: id owner call delay tube shift edit data digest whole result token
--   delay   milliseconds as a zombie; '' for the queue's own
--   tube    its new tube, if `shift` is 1
--   data    the new data, if `edit` is 1
--   digest  of the data that the caller knows; '' if that does not matter
--   whole   1: return the data too
--   result  its result; '' if the taker gives none
--   token   of the content of the result, if that is in chunks; the reply is lost if it does not exist
-- replies: done bells record data | absent bells | wrong bells state | foreign bells owner | changed bells | lost bells | missing
-- uses: storage notices changes limits groups transitions find taker
-- once: yes
-- full: yes
-- durable: yes
if not settings then return {'missing'} end
make_due_transitions()
local id, owner, call, delay, tube, shift, edit, data, digest, whole, result, token =
  unpack(ARGV, 1, 12)
local task, refusal = find_taken(id, owner, call)
if not task then return refusal end
if not has_content(token) then return finish('lost') end
if not is_known(id, digest) then return finish('changed') end
-- forward: if only_checks then return finish('may') end
end_processed(task, delay ~= '' and tonumber(delay) or settings.zombie, shift == '1' and tube or nil)
set_result(id, result, token)
return finish_with(task, edit, data, whole)
