-- were_moved: return whether items of the queue were in memory that the processes of one host share.
-- keys: meta
-- replies: done flag
return {'done', redis.call('HEXISTS', KEYS[1], 'moved')}
