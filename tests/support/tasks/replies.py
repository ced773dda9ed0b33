"""Brings about every reply that the scripts of tasks have, through real requests."""

from __future__ import annotations

import time

import pytest
from waiting import LIMIT, Background, parks, until

from pressure_mp import PressureError, TaskQueue
from pressure_mp.engines import registry
from pressure_mp.engines.contract.contents import StoreChunks, SweepContents
from pressure_mp.engines.contract.queues import Dismiss, How, IsClosed, Mismatch
from pressure_mp.engines.contract.replies import NoTask, Outcome
from pressure_mp.engines.contract.task_administration import (
    ChangeTask,
    GetTaskCounts,
    GetWorkers,
    KickTasks,
    ListTasks,
    TruncateTasks,
)
from pressure_mp.engines.contract.task_records import Edit, TaskSettings
from pressure_mp.engines.contract.task_results import OpenInbox, Result, TakeNotices, WatchTasks
from pressure_mp.engines.contract.tasks import (
    AckTask,
    AckTasks,
    AwaitTask,
    BuryTask,
    CloseTasks,
    ConfigureTasks,
    CountReady,
    DeleteTasks,
    GetTask,
    LimitTasks,
    OpenTasks,
    PauseTasks,
    PutTasks,
    ReleaseTask,
    RenewTaker,
    RequeueTasks,
    TakeTasks,
    TouchTask,
)
from pressure_mp.engines.redis.requests import tasks as redis_tasks
from tasks.pair import ask

OLD = Edit(b"new", b"not what is there")
SETTINGS = TaskSettings(60_000, 0, 0, False, 0, "time64", 0)


def refused(call, *args, **kwargs):
    with pytest.raises(PressureError):
        call(*args, **kwargs)


def of_one_task(id, *fence):
    """The requests about one task, which is not there or not the caller's, or has other data."""
    for kind in (AckTask, ReleaseTask, BuryTask, TouchTask):
        yield kind(id, *fence, edit=OLD)
    yield ChangeTask(id, "W", "R", edit=OLD)
    yield AckTasks(fence[0], [(id, fence[1])])


#: All that need a queue.
OF_A_QUEUE = [
    *(PutTasks([(b"", b"1")], "time64"), PutTasks([(b"", b"1")], "time64", delay=1)),
    *(TakeTasks("A", 1, waits=False), AckTask(b"1", "A", 1)),
    *of_one_task(b"1", "A", 1),
    *(KickTasks(1), CountReady(), GetTask(b"1"), ListTasks("R", "", 0, 1), TruncateTasks(1)),
    *(AwaitTask(b"1"), GetTaskCounts(), CloseTasks(), IsClosed(), DeleteTasks()),
    *(RenewTaker("A", True), GetWorkers(), RequeueTasks("A", "gone", 1), Dismiss(("A",))),
    *(OpenInbox("I", 1000), WatchTasks("I", [b"1"]), TakeNotices("I", 0, 1)),
    StoreChunks("0" * 24, 0, [[memoryview(b"x")]]),
    ConfigureTasks(SETTINGS, SETTINGS),
    PauseTasks("", True),
    LimitTasks("", 1, 1000),
]


def play(url, name):
    engine = registry.engine(registry.parse(url).started())
    binding = engine.bind(name, "tasks")

    def run(request):
        return ask(binding, request)

    def had(owner, call):
        session = binding.session()
        found = session.script("read_take", (owner, call))
        session.end()
        return found

    def look():
        session = binding.session()
        reply = session.script("check_ready")
        session.end()
        return reply[0]

    def begin_to_wait():
        session = binding.session()
        assert type(session.call(TakeTasks("A", 2))) is NoTask
        session.end()

    # There is no queue.
    assert run(OpenTasks(How.ATTACH, SETTINGS)) is Outcome.MISSING
    for request in OF_A_QUEUE:
        assert run(request) is Outcome.MISSING
    had("A", 1)
    assert look() == b"missing"

    # It is created; nothing is there.
    q = TaskQueue.create(name, url=url, serializer="raw")
    q.configure(ttr=60, max_deliveries=None)
    q.pause()
    q.resume()
    q.limit(1, per=0.001)
    q.limit(None)
    q.limit(1, per=0.001, each_key=True)
    q.limit(None, each_key=True)
    refused(TaskQueue.create, name, url=url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis_tasks, "FORMAT", "0")
        assert type(run(OpenTasks(How.OPEN, SETTINGS))) is Mismatch
    begin_to_wait()
    assert look() == b"empty"
    refused(q.take, 0)
    for request in (*of_one_task(b"1", "A", 1), GetTask(b"1"), AwaitTask(b"1")):
        run(request)
    refused(q.take, 0.2)

    # Tasks.
    q.put(b"1")
    assert look() == b"done"
    q.take().ack()
    q.put(b"1", id="one")
    refused(q.put, b"1", id="one")
    for request in of_one_task(b"one", "A", 1):
        run(request)
    waiting = Background(q.wait, "one")
    until(lambda: parks(waiting))
    task = q.take()
    for request in (*of_one_task(b"one", "A", 1), *of_one_task(b"one", task.owner, task.call)):
        if type(request) is not AckTasks or request.owner == "A":
            run(request)
    assert run(ChangeTask(b"one", "T", "X", edit=OLD)) is Outcome.CHANGED
    task.touch(10)
    task.release()
    task = q.take()
    task.bury()
    q.kick_many()
    task = q.take()
    assert q.peek("one").state == "T"
    assert had(task.owner, task.call)[3] == b"one"
    assert len(q.list()) == 1
    assert not waiting.result()[1]
    waiting = Background(q.wait, "one", LIMIT)
    until(lambda: parks(waiting))
    q.ack(task)
    assert waiting.result()[1]
    q.put_many([b"2", b"2"])
    task = q.take(ack=q.take())
    refused(q.take, 0, ack=task)
    refused(q.take, ack=task)
    q.put(b"2")
    q.ack_many(q.take_many(2))
    q.put(b"3")
    assert q.kill(q.list()[0]).state == "X"
    assert run(RenewTaker("A", True, None, [(b"nothing", 1)])).leases["A"]
    run(RenewTaker("A", False, ["one", "two"]))
    assert run(GetWorkers()).workers == {"A": ["one", "two"]}
    assert run(RequeueTasks("A", "gone", 1, seen=1)) is Outcome.RENEWED
    run(RequeueTasks("A", "gone", 1))
    assert q.put(b"3", unique="key", id="one") == q.put(b"3", unique="key") == "one"
    assert q.put(b"4", unique="key", on_conflict="replace") == "one"
    refused(q.put, b"3", unique="key", on_conflict="error")
    q.kill("one")
    q.configure(maxsize=1)
    q.put(b"1")
    refused(q.put, b"2", timeout=0.1)
    q.configure(maxsize=0)
    q.truncate()
    # What comes of tasks.
    lost = Result(b"x", "0" * 24)
    assert run(StoreChunks(lost.token, 1, [[memoryview(b"x")]])) is Outcome.LOST
    assert run(WatchTasks("I", [b"1"])) is Outcome.LOST
    assert run(TakeNotices("I", 0, 1)) is Outcome.LOST
    with q.inbox() as inbox:
        assert inbox.take(0) == []
        q.put(b"3", inbox=inbox)
        task = q.take()
        for kind in (AckTask, ReleaseTask, BuryTask):
            settled = run(kind(task.id_bytes, task.owner, task.call, result=lost))
            assert settled is Outcome.LOST
        held = [(task.id_bytes, task.call)]
        assert run(AckTasks(task.owner, held, [(0, lost)])) is Outcome.LOST
        run(StoreChunks(lost.token, 0, [[memoryview(b"x")]]))
        assert run(SweepContents(lost.token)) is True
        assert run(SweepContents()) is False
        task.ack(result=b"4")
        inbox.watch([task.id])
        assert [event.event for event in inbox.take()] == ["taken", "processed", "processed"]
        q.put(b"3", ttl=0.001)
        time.sleep(0.003)
        assert inbox.take(0) == []
    q.stats()
    q.put(b"4")
    assert q.qsize() == 1
    q.truncate()
    # It is shut down, and deleted.
    q.shutdown()
    assert q.is_shutdown
    refused(q.put, b"5")
    refused(q.take)
    q.delete()
    with TaskQueue(url=url) as anonymous:
        assert anonymous.exists()
