-- configure: replace the options of the queue, if they are what the caller says.
-- args: was options ttr ttl zombie keep max_deliveries per_key
--   was      the options that are replaced, as text
--   options  the new ones, as text; the numbers are the same
-- replies: done bells options | missing
-- uses: storage notices changes groups transitions
-- once: yes
-- full: yes
-- durable: yes
if not settings then return {'missing'} end
make_due_transitions()
local options = redis.call('HGET', meta, 'options')
if options == ARGV[1] then
  options = ARGV[2]
  note(set, meta, 'options', options)
  note(set, meta, 'settings', struct.pack('>I8I8i8I8I8I8', unpack(ARGV, 3, 8)))
end
return finish('done', options)
