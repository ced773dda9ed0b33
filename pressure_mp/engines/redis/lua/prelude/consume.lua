-- The common functions of scripts that take items.

-- Return why no item will come any more: 'closed', or 'ended' for a caller that asks for the end of all producers, when
-- there were some and none is left. Nil while an item may come.
local function end_of_stream(closed, eof, producers)
  if redis.call('EXISTS', closed) == 1 then return 'closed' end
  -- One field says that there ever was a producer; the others are the producers that are left.
  if eof == '1' and redis.call('HLEN', producers) == 1 then return 'ended' end
end

-- Return the status of a caller that is not served now, or nil. `over` is the end of the stream; `limit` is how many
-- items the caller may take, whatever other clients want.
local function refusal(state, bound, length, over, mode, limit, waiting, held)
  if not bound then return 'missing' end
  if length == 0 and over then return over end
  if state == 'foreign' or state == 'reserved' then return 'busy' end
  if state == 'ours' and length == 0 then return 'busy' end
  if yields('consumer', state, mode, length - limit, waiting, held) then return 'busy' end
  if length == 0 then return 'empty' end
end

-- Set the token for space of an empty queue, if it is missing (specification: Get). A producer of another
-- implementation that is at work may have taken it, to fill a queue with a bound.
local function restore_sign(bound, not_full, producer_free, state, holder, lease)
  local is_missing = redis.call('LLEN', not_full) == 0
  local overdue = is_overdue(state, holder, is_missing, lease)
  if is_missing and (overdue or bound == 0 or redis.call('EXISTS', producer_free) == 1) then
    redis.call('LPUSH', not_full, '1')
  end
end

-- Reply to a caller that is refused: in mode wait it joins the line, or gets the role to wait with. The client that
-- waits with the role is the consumer (specification: Get).
local function refuse(refused, state, free, granted, holder, consumer, waiting, entry, caller)
  if refused == 'busy' then return busy('consumer', state, waiting, entry, caller) end
  if refused == 'empty' and caller.mode == 'wait' then
    hold(state, free, granted, holder, caller.ticket, caller.client, caller.conn, caller.lease)
    redis.call('SET', consumer, caller.client)
  else
    give_back(state, free, granted, holder)
  end
  return {refused, refused == 'empty' and 'item' or nil}
end

-- Take the next item, and count it; returns it, the messages counted so far, its token if it has one, and its place if
-- the discipline needs it to put the item back; or nil and the server's error.
local function remove(data, length, bound, not_full, messages, bytes, consumer, client, uploads)
  local signs = redis.call('LLEN', not_full)
  -- The take comes first: it is allowed when the server is out of memory, and so are the commands after it.
  local item, put_back, place = taking(data, length)()
  if not item then return nil, put_back end
  local weight, token = size_of(uploads, item)
  local total, problem = count(messages, bytes, weight, 1)
  if not total then
    put_back()
    return nil, problem
  end
  redis.call('SET', consumer, client)
  if signs == 0 and (bound == 0 or length - 1 < bound) then redis.call('LPUSH', not_full, '1') end
  return item, total, token, place
end
