-- closed: return whether the queue was shut down.
-- replies: done bells flag | missing
-- uses: storage notices changes limits groups transitions
if not settings then return {'missing'} end
return finish('done', settings.closed and 1 or 0)
