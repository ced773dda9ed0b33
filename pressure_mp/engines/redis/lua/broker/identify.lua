-- identify: what tells this server's queues of one prefix from all others.
-- keys: identity
-- args: drawn
--   drawn  what it is from now on, if nobody asked before
-- replies: done identity
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return {'done', redis.call('GET', KEYS[1])}
