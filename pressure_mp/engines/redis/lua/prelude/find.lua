-- Return a task as it is now, nil when it does not exist.
local function find(id)
  local task = read(id, record_of(id))
  if task and task.ends > 0 and task.ends <= now then
    end_state(task)
    flush()
    if task.state == 'X' then return nil end
  end
  return task
end
