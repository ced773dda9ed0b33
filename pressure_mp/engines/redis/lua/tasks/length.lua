-- length: count the ready tasks.
-- args: tube
--   tube  '' for all tubes
-- replies: done bells number | missing
-- uses: storage notices changes limits groups transitions ready
if not settings then return {'missing'} end
make_due_transitions()
return finish('done', number_ready(ARGV[1]))
