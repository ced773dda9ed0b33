-- release_space: a writer has put all that it accepted: the space that it reserved is for anybody.
-- keys: producer_free producer_claim producer_holder
-- args: writer period
-- replies: done
-- uses: role
-- Nothing is done when the writer has begun a later period since.
local ticket, period = unpack(redis.call('HMGET', KEYS[3], 'ticket', 'period'))
if ticket == ARGV[1] and (tonumber(period or '') or 0) <= tonumber(ARGV[2]) then
  give_back('mine', KEYS[1], KEYS[2], KEYS[3])
end
return {'done'}
