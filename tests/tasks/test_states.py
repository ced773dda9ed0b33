"""Every way from one state to another that the table has, and no other."""

from __future__ import annotations

import multiprocessing
import time

import pytest
from engines import Can
from tasks.life import OPERATIONS, bring, check_stats, queue_for
from waiting import until

from pressure_mp import Empty, NotTaken, TaskNotFound, TaskQueue, WrongState, states
from pressure_mp.states import TRANSITIONS


@pytest.mark.parametrize("state", states.NAMES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_takes_a_task_out_of_the_states_of_the_table_only(operation, state, url, name):
    queue = queue_for(state, name, url)
    task = bring(queue, state, tube="a")
    before = queue.peek(task.id)
    allowed = states.sources(operation) or {states.TAKEN, states.READY}  # touch changes no state
    if state in allowed - ({states.BURIED} if operation == "switch" else set()):
        OPERATIONS[operation](queue, task)
    else:
        with pytest.raises(WrongState) as caught:
            OPERATIONS[operation](queue, task)
        assert caught.value.state == state
        assert caught.value.task_id == task.id
        assert f"is {states.NAMES[state]} ({state})" in str(caught.value)
        by_taker = operation in ("ack", "release", "bury", "touch", "snatch")
        assert (type(caught.value) is NotTaken) == by_taker
        after = queue.peek(task.id)
        assert (after.state, after.tube, after.due) == (before.state, before.tube, before.due)
    check_stats(queue)
    queue.delete()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operation_finds_a_task_that_is_not_there(operation, url, name):
    queue = TaskQueue(name, url=url)
    task = bring(queue, states.TAKEN)
    task.ack()
    with pytest.raises(TaskNotFound, match=r"is not there \(X\)") as caught:
        OPERATIONS[operation](queue, task)
    assert caught.value.state == "X"
    with pytest.raises(TaskNotFound):
        queue.peek(task.id)
    queue.delete()


def take_and_die(queue):
    queue.take()


def lapse(queue, id):
    """Let the time of a task's state pass."""
    time.sleep(0.03)
    try:
        queue.peek(id)
    except TaskNotFound:
        pass


def is_back(queue, transition):
    """Wait in vain; a waiting take looks for dead takers."""
    with pytest.raises(Empty):
        queue.take(0.6, tube="other")
    return transition.name in queue.stats().transitions


def happen(queue, transition):
    """Bring about a transition of the table."""
    before, after, operation, when = transition
    delay = 3600 if "delay" in when else None
    tube = "b" if "tube" in when else None
    if operation == "put":
        queue.put("data", delay=delay, tube="a")
    elif operation == "replace":
        first = 3600 if before == states.WAITING else None
        queue.put("data", delay=first, tube="a", unique="key")
        queue.put("data", delay=delay, tube="a", unique="key", on_conflict="replace")
    elif operation == "take":
        queue.put("data", tube="a")
        queue.take()
    elif operation == states.TIME:
        if before == states.TAKEN:
            queue.put("data", tube="a")
            lapse(queue, queue.take(ttr=0.01).id)
        elif before == states.ZOMBIE:
            bring(queue, states.TAKEN, tube="a").ack(delay=0.01)
            time.sleep(0.03)
        elif before == states.BURIED:
            task = bring(queue, states.TAKEN, tube="a")
            task.bury(ttl=0.01)
            lapse(queue, task.id)
        else:
            options = {states.WAITING: {"delay": 0.01}, states.READY: {"ttl": 0.01}}[before]
            lapse(queue, queue.put("data", tube="a", **options))
    elif operation == states.REQUEUE:
        queue.put("data", tube="a")
        process = multiprocessing.get_context("fork").Process(target=take_and_die, args=(queue,))
        process.start()
        process.join()
        until(lambda: is_back(queue, transition))
    elif operation == "truncate":
        bring(queue, before, tube="a")
        queue.truncate()
    elif operation == "move":
        task = bring(queue, before if before != states.SHIFT else after, tube="a")
        queue.move(task.id, "b")
    elif operation == "switch":
        task = bring(queue, before, tube="a")
        timed = after in (states.WAITING, states.ZOMBIE)
        queue.switch(task.id, after, delay=3600 if timed else None)
    elif operation in ("cancel", "kick", "kill", "snatch", "restart"):
        task = bring(queue, before, tube="a")
        options = {} if operation in ("cancel", "kill") else {"delay": delay}
        getattr(queue, operation)(task.id, **options)
    else:
        task = bring(queue, states.TAKEN, tube="a")
        options = {} if operation != "release" else {"delay": delay}
        getattr(task, operation)(tube=tube, **options)


def case(row):
    marks = [pytest.mark.needs(Can.PROCESSES)] if row.operation == states.REQUEUE else []
    return pytest.param(row, id="-".join(row).replace(" ", "_"), marks=marks)


@pytest.mark.parametrize("transition", [*map(case, TRANSITIONS)])
def test_every_transition_of_the_table_happens(transition, url, name):
    state = states.ZOMBIE if "zombie" in transition.when else transition.before
    if transition.before == states.SHIFT:
        state = transition.after
    if "keeps" in transition.when:
        state = states.DONE
    limit = 1 if "max_deliveries" in transition.when else None
    queue = queue_for(state, name, url, max_deliveries=limit)
    happen(queue, transition)
    stats = check_stats(queue)
    tubes = [tube.transitions for tube in stats.tubes.values()]
    assert any(transition.name in ways for ways in tubes)
    if states.SHIFT not in transition.name:
        assert stats.transitions[transition.name] == 1
    queue.delete()
