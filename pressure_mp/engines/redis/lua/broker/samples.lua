-- samples: list the samples of all queues after a time.
-- keys: samples
-- args: after
-- replies: done samples
-- Each is a time and data, the oldest first. Repeated calls get few samples, so it reads from the newest on.
local STEP = 10
local after = tonumber(ARGV[1])
local newest_first = {}
local last = -1
repeat
  local some = redis.call('LRANGE', KEYS[1], last - STEP + 1, last)
  local older = false
  for i = #some, 1, -1 do
    local time, data = string.match(some[i], '^(%d+) (.*)$')
    if time and tonumber(time) <= after then older = true break end
    if time then newest_first[#newest_first + 1] = {time, data} end
  end
  last = last - STEP
until older or #some < STEP
local found = {}
for i = #newest_first, 1, -1 do
  found[#found + 1] = newest_first[i][1]
  found[#found + 1] = newest_first[i][2]
end
return {'done', found}
