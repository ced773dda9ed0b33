-- renew: renew the leases of a process in several queues, see `renew` of a queue.
-- args: owner queue...
--   queue  for each: its lease, consumes, produces and tickets, see `renewal`, each in a line
-- replies: done renewals
-- uses: bound incarnation role line holders renewal
-- The keys are the keys of each queue in turn. The reply for a queue that cannot be renewed in this way is ''.
local parts, found = #KEYS / (#ARGV - 1), {}
for queue = 2, #ARGV do
  local first = (queue - 2) * parts
  local keys, said = {unpack(KEYS, first + 1, first + parts)}, {}
  for line in string.gmatch(ARGV[queue], '[^\n]+') do said[#said + 1] = line end
  local ok, reply = false, nil
  if not has_former_keys(keys[1], keys[2]) then
    ok, reply = pcall(renewal, keys, ARGV[1], said[1], said[2], said[3], {unpack(said, 4)})
  end
  found[#found + 1] = ok and reply or ''
end
return {'done', found}
