-- kind: return the discipline of the queue; a queue of another implementation is first in, first out.
-- keys: bound meta
-- replies: done discipline | missing
if redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
return {'done', redis.call('HGET', KEYS[2], 'discipline') or 'fifo'}
