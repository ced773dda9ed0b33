-- The common functions of scripts that change one task: for its taker, or for an administrator.

-- Return the task, if this process has it by this take; otherwise nil and the refusal.
local function find_taken(id, owner, call)
  local task = find(id)
  if not task then return nil, finish('absent') end
  if task.state ~= 'T' then return nil, finish('wrong', task.state) end
  if task.owner ~= owner or task.call ~= tonumber(call) then return nil, finish('foreign', task.owner) end
  return task
end

-- Whether the data is unchanged, if the call has a digest of it.
local function is_known(id, digest)
  return digest == '' or redis.sha1hex(redis.call('HGET', payloads, id) or '') == digest
end

-- Change the data, if `edit` is 1; and return the task, with its data if `whole` is 1.
local function finish_with(task, edit, data, whole)
  local told = ''
  if whole == '1' then told = edit == '1' and data or redis.call('HGET', payloads, task.id) end
  if edit == '1' and task.state ~= 'X' then note(set, payloads, task.id, data) end
  return finish('done', pack(task), told)
end

-- Note that a task was processed.
local function end_processed(task, zombie, tube)
  if settings.keep then
    change_state(task, 'D', 0, tube)
    report_end(task, 'P', 'T')
  elseif zombie ~= 0 then
    change_state(task, 'Z', zombie_until(zombie), tube)
    report_end(task, 'P', 'T')
  else
    remove_task(task, 'P')
  end
end
