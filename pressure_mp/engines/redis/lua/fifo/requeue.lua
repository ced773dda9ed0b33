-- requeue: put back to the front what a process has in flight; what was delivered too often is set aside.
-- keys: bound data not_full meta produced_messages consumed_messages consumed_bytes done finished rejected flying flights presence returned uploads
-- args: owner seen call
--   seen  the end of the owner's lease, as the caller saw it; empty: whatever the lease says
--   call  only what the owner took in this call; empty: all of it
-- replies: done returned | renewed | missing
-- uses: bound tasks flights parts
-- Items go back in the order of their numbers, and over the bound if need be. On a queue that was
-- shut down with `immediate` they are dropped. What is not put back counts as done.
local bound = read_bound(KEYS[1])
if not bound then return {'missing'} end
local data, not_full, flying, flights, presence, returned = KEYS[2], KEYS[3], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local owner, call = ARGV[1], ARGV[3]
if ARGV[2] ~= '' and redis.call('HGET', presence, owner) ~= ARGV[2] then return {'renewed'} end
local dropping = redis.call('HGET', KEYS[4], 'dropping')
local signs = redis.call('LLEN', not_full)
local consumed = tonumber(redis.call('GET', KEYS[6]) or '0')
-- A key of the wrong type is found before anything is written.
for _, list in ipairs({data, returned, KEYS[9], KEYS[10]}) do redis.call('LLEN', list) end
for _, hash in ipairs({flying, presence}) do redis.call('HLEN', hash) end
redis.call('ZCARD', KEYS[15])
for _, number in ipairs({KEYS[5], KEYS[7], KEYS[8]}) do redis.call('GET', number) end

-- What it has in flight, by what becomes of it.
local back, bytes, newest, settled = {}, 0, 0, 0
local all = redis.call('HGETALL', flights)
for i = 1, #all, 2 do
  local seq = all[i]
  local deliveries, limit, number, whose, token = read_flight(all[i + 1])
  if whose == owner and (call == '' or call == number) then
    local item = redis.call('HGET', flying, seq)
    redis.call('HDEL', flights, seq)
    redis.call('HDEL', flying, seq)
    if item and deliveries > 0 then
      if dropping then
        settled = settled + 1
        if token then redis.call('ZADD', KEYS[15], 0, token) end
      elseif limit > 0 and deliveries >= limit then
        settled = settled + 1
        redis.call('LPUSH', KEYS[10], item)
      else
        back[#back + 1] = {tonumber(seq), deliveries, item}
        if token then redis.call('ZADD', KEYS[15], '+inf', token) end
        bytes = bytes + weigh(KEYS[15], item)
        newest = math.max(newest, tonumber(seq))
      end
    end
  end
end
if call == '' then redis.call('HDEL', presence, owner) end
if settled > 0 then finish(settled, KEYS[5], KEYS[6], KEYS[8], KEYS[9]) end
local number = #back
-- Not consumed in this queue: left by one that a client of another make deleted.
if number == 0 or consumed < number then return {'done', 0} end
redis.call('INCRBY', KEYS[6], -number)
redis.call('INCRBY', KEYS[7], -bytes)

-- What was put back before and is older stands in front of it.
local record = redis.call('LINDEX', returned, -1)
while record do
  local item = redis.call('LINDEX', data, -1)
  local seq, deliveries = read_returned(record, item)
  if seq and seq > newest then break end
  redis.call('RPOP', returned)
  if seq then
    redis.call('RPOP', data)
    back[#back + 1] = {seq, deliveries, item}
  end
  record = redis.call('LINDEX', returned, -1)
end
table.sort(back, function(one, other) return one[1] > other[1] end)
for _, flight in ipairs(back) do
  redis.call('RPUSH', data, flight[3])
  redis.call('RPUSH', returned, string.format('%.0f %d %s', flight[1], flight[2], redis.sha1hex(flight[3])))
end
if signs > 0 and bound > 0 and redis.call('LLEN', data) >= bound then redis.call('DEL', not_full) end
return {'done', number}
