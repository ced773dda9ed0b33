-- What the fast path of `ack` can do is done; else `ack` goes on.
local id, owner, call, delay, _, shift, _, _, digest, whole, result, token = unpack(ARGV, 1, 12)
if delay == '' and shift == '0' and digest == '' and whole == '0' then
  local record, bells = ack_one(id, owner, call, result, token)
  if record then
    local told = 'X' .. string.sub(record, 2, 25) .. struct.pack('>I8I8', now, 0) .. string.sub(record, 42)
    return {'done', bells, told, ''}
  end
end
