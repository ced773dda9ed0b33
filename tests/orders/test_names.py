"""One name is one queue, of one kind."""

from __future__ import annotations

import pytest
from order_keys import first

from pressure_mp import (
    FairQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueAlreadyExistsError,
    QueueDoesNotExistError,
    QueueMismatchError,
    SimpleQueue,
    TaskQueue,
)

pytestmark = pytest.mark.usefixtures("world")

KINDS = {
    "fifo": lambda **options: Queue(**options),
    "lifo": lambda **options: LifoQueue(**options),
    "priority": lambda **options: PriorityQueue(**options),
    "fair": lambda **options: FairQueue(first, **options),
}


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_a_name_that_is_taken_by_another_kind_is_refused(one, other, url, name):
    queue = KINDS[one](name=name, url=url)
    queue.open()
    if one == other:
        assert KINDS[other](name=name, url=url).exists()
    else:
        with pytest.raises(QueueMismatchError, match=f"exists with discipline {one}, not {other}"):
            KINDS[other](name=name, url=url).open()
    queue.delete()
    KINDS[other](name=name, url=url).delete()


@pytest.mark.parametrize(
    ("kind", "stale"), [(kind, stale) for kind in KINDS for stale in KINDS if kind != stale]
)
def test_a_handle_does_not_go_on_at_a_queue_of_another_kind(kind, stale, url, name):
    handle, remover = (KINDS[stale](name=name, url=url) for _ in "12")
    handle.put((1, "old"))
    remover.delete()
    queue = KINDS[kind](name=name, url=url)
    queue.put((1, "new"))
    calls = (
        *(lambda: handle.put((2, "lost")), lambda: handle.put_many([(2, "lost")])),
        *(handle.get, handle.get_nowait, lambda: handle.get_many(2), handle.qsize, handle.stats),
        *(handle.shutdown, handle.delete, handle.purge, handle.peek),
    )
    for call in calls:
        with pytest.raises(QueueDoesNotExistError):
            call()
    assert not handle.exists()
    queue.put((3, "newer"))
    assert sorted(queue.get_many(9)) == [(1, "new"), (3, "newer")]
    queue.delete()


@pytest.mark.parametrize("kind", KINDS)
def test_a_handle_of_tasks_does_not_go_on_at_a_queue_of_items(kind, url, name):
    tasks = TaskQueue(name, url=url)
    tasks.put("old")
    tasks.delete()
    queue = KINDS[kind](name=name, url=url)
    queue.put((1, "new"))
    for call in (lambda: tasks.put("lost"), lambda: tasks.take(timeout=0), tasks.qsize):
        with pytest.raises(QueueDoesNotExistError):
            call()
    assert queue.get() == (1, "new")
    queue.delete()


@pytest.mark.parametrize("kind", KINDS)
def test_a_handle_of_items_does_not_go_on_at_a_queue_of_tasks(kind, url, name):
    queue = KINDS[kind](name=name, url=url)
    queue.put((1, "old"))
    queue.delete()
    tasks = TaskQueue(name, url=url)
    tasks.put("new")
    for call in (lambda: queue.put((1, "lost")), queue.get, queue.qsize, queue.delete):
        with pytest.raises(QueueDoesNotExistError):
            call()
    task = tasks.take(timeout=0)
    assert task.data == "new"
    task.ack()
    tasks.delete()


def test_kinds_with_the_protocols_keys_refuse_it_too(url, name):
    LifoQueue.create(name, url=url)
    for make in (
        lambda: SimpleQueue(name, url=url).open(),
        lambda: PressureQueue(name, url=url).create(),
        lambda: Queue.attach(name, url=url),
    ):
        with pytest.raises((QueueMismatchError, QueueAlreadyExistsError)):
            make()
