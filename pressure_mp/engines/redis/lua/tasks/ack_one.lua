-- ack_one: the fast path of `ack`, see the prelude `ack_one`.
-- args: id owner call result token
--   as in ack
-- replies: done record | done bells record | declined | missing
-- uses: storage notices ack_one
-- once: yes
-- full: yes
-- durable: yes
-- bare: yes
if not settings then return {'missing'} end
local id, owner, call, result, token = unpack(ARGV, 1, 5)
local record, bells = ack_one(id, owner, call, result, token)
if not record then return nil end
local told = 'X' .. string.sub(record, 2, 25) .. struct.pack('>I8I8', now, 0) .. string.sub(record, 42)
return bells == '' and told or {'done', bells, told}
