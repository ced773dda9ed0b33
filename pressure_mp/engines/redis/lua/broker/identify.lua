-- identify: return the id of this server's queues of one prefix.
-- keys: identity
-- args: drawn
--   drawn  the id from now on, if there is none
-- replies: done identity
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return {'done', redis.call('GET', KEYS[1])}
