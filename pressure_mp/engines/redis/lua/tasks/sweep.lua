-- sweep: make transitions that are due; remove results, inboxes and contents whose time is over, and a content that
-- will not be used.
-- args: token
--   token  may be empty
-- replies: done left
-- uses: storage notices changes limits groups transitions
-- `left`: 1 if there may be more; call again.
if not settings then return {'done', 0} end
make_due_transitions()
local token = ARGV[1]
local ends = tonumber(redis.call('ZSCORE', times, 'c' .. token) or 'inf')
if ends < math.huge then
  end_at('c', token, '0')
  flush()
end
local were_some = remove_expired(MOST_DUE)
flush()
return {'done', were_some and 1 or 0}
