-- exists: return whether the queue was created (specification: Exists).
-- keys: bound
-- replies: done flag
-- uses: bound
return {'done', is_there(KEYS[1]) and 1 or 0}
