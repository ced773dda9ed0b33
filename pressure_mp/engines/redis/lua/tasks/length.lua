-- length: count the ready tasks.
-- args: tube
--   tube  '' for all tubes
-- replies: done bells number | missing
-- uses: storage hearing told groups life ready
if not settings then return {'missing'} end
sweep()
return finish('done', number_ready(ARGV[1]))
