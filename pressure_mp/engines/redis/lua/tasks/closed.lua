-- closed: return whether the queue was shut down.
-- args: immediate
--   immediate  1: whether it drops items, as no queue of tasks does
-- replies: done flag | missing
-- uses: storage
if not settings then return {'missing'} end
return {'done', ARGV[1] ~= '1' and settings.closed and 1 or 0}
