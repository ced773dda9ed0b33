"""Brings about every answer that the scripts of tasks have, through real operations."""

from __future__ import annotations

import hashlib

import pytest
from waiting import Background, until

from pressure_mp import PressureError, TaskQueue
from pressure_mp.drivers import drive
from pressure_mp.effects import MISMATCH
from pressure_mp.operations.administration import TaskAdministrationOperations
from pressure_mp.operations.tasks import Changed, Edit

OLD = hashlib.sha1(b"not what is there").hexdigest()


def refused(call, *args, **kwargs):
    with pytest.raises((PressureError, Changed)):
        call(*args, **kwargs)


def each_without_a_task(operations, *fence):
    """The operations for one task, which is not there or not the caller's."""
    edit = Edit(True, b"new", OLD)
    yield operations.ack(*fence, None, None, edit, False)
    yield operations.release(*fence, 0, None, b"", None, "", edit, False)
    yield operations.bury(*fence, 0, None, "", edit, False)
    yield operations.touch(*fence, None, edit, False)


def play(url, name):
    other = TaskQueue(name + "-other", url=url)
    operations = TaskAdministrationOperations(name, 5000)

    def run(operation):
        engine = other._bind.__self__._engine()
        return drive(operation, engine.bind(name, operations.discipline).session())

    # There is no queue.
    refused(TaskQueue.attach, name, url=url)
    run(operations._let_go(b"", ""))
    for operation in (
        *(operations.put([(b"", b"1")], "time64", 0, None, b"8" * 8, ""),),
        *(operations.take("A", 1, 1, "", None, False, None), operations.ack_many([(b"1", 1)], "A")),
        *each_without_a_task(operations, b"1", "A", 1),
        *(operations.change("kill", b"1", "X"), operations.kick_some(1, 0, None)),
        *(operations.length(""), operations.peek(b"1"), operations.list("R", "", 1)),
        operations.truncate(),
        *(operations.wait(b"1", "ticket", 0), operations.stats(), operations.close()),
        *(operations.closed(), operations.delete(), operations.renew("A", True)),
        *(operations.requeue("A", "gone"), operations.dismiss(["A"])),
        operations._ask_again("A", 1),
        operations._call("truncate", (1,)),
    ):
        refused(run, operation)

    # It is created; nothing is there.
    q = TaskQueue.create(name, url=url, serializer="raw")
    refused(TaskQueue.create, name, url=url)
    other_format = "open", "", "tasks", "0", "", 0, 0, 0, 0, 0
    assert run(operations._call("open", other_format))[0] == MISMATCH
    refused(q.take, 0)
    for operation in (
        *each_without_a_task(operations, b"1", "A", 1),
        operations.change("kill", b"1", "X"),
        operations.peek(b"1"),
        operations.wait(b"1", "ticket", 0),
    ):
        refused(run, operation)
    getting = Background(q.take, 0.2)
    refused(getting.result)

    # Tasks.
    q.put(b"1", id="one")
    refused(q.put, b"1", id="one")
    for operation in (*each_without_a_task(operations, b"one", "A", 1),):
        refused(run, operation)
    refused(q.kick, "one")
    waiting = Background(q.wait, "one")
    until(lambda: waiting.is_alive())
    task = q.take()
    for operation in (*each_without_a_task(operations, b"one", "A", 1),):
        refused(run, operation)
    me = task.owner
    for operation in (*each_without_a_task(operations, b"one", me, task.call),):
        refused(run, operation)
    refused(run, operations.change("kill", b"one", "X", edit=Edit(True, b"new", OLD)))
    task.touch(10)
    task.release()
    task = q.take()
    task.bury()
    q.kick_many()
    task = q.take()
    assert q.peek("one").state == "T"
    assert run(operations._ask_again(me, task.call))[1][0].id == b"one"
    assert len(q.list()) == 1
    assert not waiting.result()[1]
    waiting = Background(q.wait, "one")
    until(lambda: q._run(operations._call("stats", ())))
    q.ack(task)
    q.put_many([b"2", b"2"])
    task = q.take(ack=q.take())
    refused(q.take, 0, ack=task)
    refused(q.take, ack=task)
    q.put(b"2")
    q.ack_many(q.take_many(2))
    q.put(b"3")
    assert q.kill(q.list()[0]).state == "X"
    assert run(operations.renew("A", True))[1]["A"]
    run(operations.requeue("A", "gone", seen=1))
    run(operations.requeue("A", "gone"))
    q.stats()
    q.put(b"4")
    assert q.qsize() == 1
    q.truncate()
    run(operations._let_go(b"", ""))
    # It is shut down, and deleted.
    q.shutdown()
    assert q.is_shutdown
    refused(q.put, b"5")
    refused(q.take)
    q.delete()
    other.delete()
    with TaskQueue(url=url) as anonymous:
        assert anonymous.exists()
