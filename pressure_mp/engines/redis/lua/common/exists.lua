-- exists: return whether the queue was created (specification: Exists).
-- keys: bound
-- replies: done flag
return {'done', redis.call('EXISTS', KEYS[1])}
