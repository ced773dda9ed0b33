"""A signal handler that uses queues, wherever it comes in the midst of a call, does not hang; and
both it and the call do what they do alone."""

from __future__ import annotations

import pickle

import pytest
from interrupting import Interrupted

from pressure_mp import Empty, JoinableQueue, Queue, TaskDoneError, TaskQueue
from pressure_mp.buffering import pace

#: Seconds until an item that is there must be got.
SOON = 10.0


class Handler:
    """What a signal handler does with a queue: it puts, looks, and gets what it can."""

    def __init__(self, queue):
        self.queue = queue
        self.got = []

    def put(self):
        self.queue.put("handler")

    def get(self):
        assert self.queue.qsize() >= 0
        try:
            self.got.append(self.queue.get_nowait())
        except Empty:
            pass

    def both(self):
        self.put()
        self.get()


def rest(queue, number):
    return [queue.get(timeout=SOON) for _ in range(number)]


KINDS = {
    "named": lambda url, name: Queue(0, name, url=url),
    "signed": lambda url, name: Queue(0, name, url=url, authkey=b"key"),
    "joinable": lambda url, name: JoinableQueue(0, name, url=url),
    "buffering": lambda url, name: Queue(0, name, url=url, buffering=10, prefetch=3),
    "anonymous": lambda url, name: Queue(url=url),
    "reading ahead": lambda url, name: Queue(url=url),
    "anonymous joinable": lambda url, name: JoinableQueue(url=url),
}


@pytest.fixture(params=KINDS)
def queue(request, server, name, monkeypatch):
    if request.param == "reading ahead":
        monkeypatch.setattr(pace.Pace, "next_number", lambda pace, handed: 10)
    with KINDS[request.param](server.url, name) as queue:
        yield queue


def test_in_the_midst_of_a_put(queue, sweep):
    handler = Handler(queue)

    def check(interrupted, value):
        # The last time there is no place, and no signal.
        items = sorted([*handler.got, *rest(queue, 1)])
        items += rest(queue, queue.qsize())
        assert sorted(items) in (["handler", "put"], ["put"])
        handler.got.clear()

    sweep(lambda: queue.put("put"), check, error=None, use=handler.both)


@pytest.mark.parametrize("queue", [kind for kind in KINDS if kind != "buffering"], indirect=True)
def test_in_the_midst_of_a_get(queue, sweep):
    """With ``prefetch``, a get that uses the same handle waits for the other one."""
    handler = Handler(queue)

    def prepare():
        for number in range(3):
            queue.put(number)

    def check(interrupted, value):
        items = [value, *handler.got]
        items += rest(queue, queue.qsize())
        assert sorted(item for item in items if item != "handler") == [0, 1, 2]
        assert items.count("handler") <= 1
        handler.got.clear()

    sweep(lambda: queue.get(timeout=SOON), check, prepare=prepare, error=None, use=handler.both)


def test_a_get_in_the_midst_of_an_acknowledgement(server, name, sweep):
    with JoinableQueue(0, name, url=server.url) as queue:

        def put_and_get():
            queue.put("item")
            queue.get(timeout=SOON)

        def check(interrupted, value):
            # The last time there is no place, and no signal.
            assert queue.unfinished_tasks in (0, 1)
            if queue.unfinished_tasks:
                queue.task_done()
            queue.join()

        sweep(queue.task_done, check, prepare=put_and_get, error=None, use=put_and_get)


@pytest.mark.filterwarnings(
    "error::pressure_mp.LateTaskDoneWarning",
    # As in the tests of interrupts at every place.
    "ignore:coroutine .* was never awaited:RuntimeWarning",
    "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning",
)
@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("error", [None, Interrupted])
@pytest.mark.parametrize("queue", ["joinable", "anonymous joinable"], indirect=True)
def test_an_acknowledgement_in_the_midst_of_an_acknowledgement(queue, sweep, error):
    """A call that the handler ends is repeated, as its caller does not know what came of it."""

    def put_and_get():
        queue.put("item")
        queue.get(timeout=SOON)

    def use():
        put_and_get()
        queue.task_done()

    def check(interrupted, value):
        if interrupted:
            queue.task_done()
        stats = queue.stats()
        assert (stats.unfinished, stats.in_flight) == (0, 0)
        with pytest.raises(TaskDoneError):
            queue.task_done()

    sweep(queue.task_done, check, prepare=put_and_get, error=error, use=use)


def test_in_the_midst_of_a_look(queue, sweep):
    handler = Handler(queue)

    def check(interrupted, value):
        assert 0 <= value <= 1
        assert rest(queue, queue.qsize()) in ([], ["handler"])

    sweep(queue.qsize, check, error=None, use=handler.put)


def put_and_get(handle):
    handle.put("item")
    return handle.get(timeout=SOON)


def put_and_take(handle):
    handle.put("item")
    with handle.take(timeout=SOON) as task:
        return task.data


@pytest.mark.parametrize(("kind", "use"), [(Queue, put_and_get), (TaskQueue, put_and_take)])
def test_in_the_midst_of_the_first_use_of_a_handle(server, name, sweep, kind, use):
    with kind(name=name, url=server.url) as queue:
        data = pickle.dumps(queue)

        def act():
            with pickle.loads(data) as handle:
                return use(handle)

        def check(interrupted, value):
            assert value == "item"
            assert queue.qsize() == 0

        sweep(act, check, error=None, use=act, every=3)


def test_in_the_midst_of_a_take_and_its_acknowledgement(server, name, sweep):
    with TaskQueue(name, url=server.url) as queue:
        taken = []

        def prepare():
            queue.put("task")

        def act():
            task = queue.take(timeout=SOON)
            task.ack()
            taken.append(task.data)

        def use():
            queue.put("handler")
            task = queue.take(timeout=SOON)
            task.ack()
            taken.append(task.data)

        def check(interrupted, value):
            assert sorted(taken) in (["handler", "task"], ["task"])
            taken.clear()
            assert queue.stats().counts["R"] == queue.stats().counts["T"] == 0

        sweep(act, check, prepare=prepare, error=None, use=use)
