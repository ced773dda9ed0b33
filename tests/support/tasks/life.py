"""Tasks in every state, and what can be done with them."""

from __future__ import annotations

from pressure_mp import TaskQueue, states

#: Options of the queue in which a task gets into a state.
OPTIONS = {states.ZOMBIE: {"zombie": 3600}, states.DONE: {"keep": True}}


def queue_for(state, name, url, **options):
    return TaskQueue(name, url=url, **OPTIONS.get(state, {}), **options)


def bring(queue, state, **put):
    """Put a task and bring it into a state; it, as its taker has it if it was ever taken."""
    if state == states.WAITING:
        return queue.peek(queue.put("data", delay=3600, **put))
    id = queue.put("data", **put)
    if state == states.READY:
        return queue.peek(id)
    task = queue.take(0)
    assert task.id == id
    if state == states.BURIED:
        task.bury()
    elif state in (states.ZOMBIE, states.DONE):
        task.ack()
    return task


#: What can be done with one task, by the operation of the table.
OPERATIONS = {
    "ack": lambda queue, task: queue.ack(task),
    "release": lambda queue, task: queue.release(task),
    "bury": lambda queue, task: queue.bury(task),
    "touch": lambda queue, task: queue.touch(task),
    "kick": lambda queue, task: queue.kick(task.id),
    "kill": lambda queue, task: queue.kill(task.id),
    "snatch": lambda queue, task: queue.snatch(task.id),
    "restart": lambda queue, task: queue.restart(task.id),
    "move": lambda queue, task: queue.move(task.id, "elsewhere"),
    "switch": lambda queue, task: queue.switch(task.id, "buried"),
}


def check_stats(queue):
    """The counts agree with the listed tasks; the transitions are in the table."""
    stats = queue.stats()
    there = queue.list(limit=10_000)
    for tube, counted in [(None, stats), *stats.tubes.items()]:
        mine = [task.state for task in there if tube in (None, task.tube)]
        assert counted.counts == {state: mine.count(state) for state in states.NAMES}
    known = {transition.name for transition in states.TRANSITIONS}
    for counted in (stats, *stats.tubes.values()):
        assert counted.transitions.keys() <= known
    return stats
