"""Calls of a signal handler or a finalizer, in the midst of a call of the same thread at the same
file: each is done alone, as if the other one had come before or after it. And their exceptions."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import itertools
import random
import sqlite3
import threading
from contextlib import closing

import interrupting
import pytest
from waiting import LIMIT, until

from pressure_mp import Empty, Queue, TaskQueue
from pressure_mp.engines.sqlite import store

pytestmark = [
    # An operation is made of coroutines, also for threads: one that was not begun says so.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    # Raised in a finalizer, or in what the garbage collector calls, an exception goes no further.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"
    ),
]

#: Every how many places a call is interrupted, in one run.
EVERY = 7


@pytest.fixture
def url(tmp_path):
    return f"sqlite://{tmp_path}/queues"


def sweep(act, check, every=EVERY, error=None, **options):
    first = random.randrange(every)
    assert interrupting.sweep(act, check, error=error, every=every, first=first, **options)


def rest(queue):
    return [queue.get() for _ in range(queue.qsize())]


def use(queue, got):
    queue.put("handler")
    try:
        got.append(queue.get_nowait())
    except Empty:
        pass


@pytest.mark.parametrize("prefix", ["", "other"], ids=["at the queue", "at another prefix"])
def test_in_the_midst_of_a_put(url, prefix):
    queue, got = Queue(name="queue", url=url), []
    used = Queue(name="queue", url=url, prefix=prefix) if prefix else queue

    def check(interrupted, value):
        items = [*got, *rest(queue), *rest(used)]
        assert sorted(items) in (["handler", "put"], ["put"])
        got.clear()

    sweep(lambda: queue.put("put"), check, use=lambda: use(used, got))


def test_in_the_midst_of_a_get(url):
    queue, got = Queue(name="queue", url=url), []

    def check(interrupted, value):
        items = [value, *got, *rest(queue)]
        assert sorted(item for item in items if item != "handler") == [0, 1, 2]
        assert items.count("handler") <= 1
        got.clear()

    sweep(queue.get, check, prepare=lambda: queue.put_many(range(3)), use=lambda: use(queue, got))


def test_in_the_midst_of_a_take_and_its_acknowledgement(url):
    queue, taken = TaskQueue("tasks", url=url), []

    def act():
        task = queue.take(timeout=0)
        task.ack()
        taken.append(task.data)

    def use():
        queue.put("handler")
        act()

    def check(interrupted, value):
        assert sorted(taken) in (["handler", "task"], ["task"])
        taken.clear()
        assert queue.stats().counts["R"] == queue.stats().counts["T"] == 0

    sweep(act, check, prepare=lambda: queue.put("task"), use=use, every=41)


def test_in_the_midst_of_the_first_use_of_a_file(tmp_path):
    numbers = itertools.count()
    queues = []

    def prepare():
        queues.append(Queue(name="queue", url=f"sqlite://{tmp_path}/{next(numbers)}"))

    def check(interrupted, value):
        assert sorted(rest(queues[-1])) in (["handler", "put"], ["put"])

    sweep(
        lambda: queues[-1].put("put"),
        check,
        prepare=prepare,
        use=lambda: queues[-1].put("handler"),
    )


class Garbage:
    """Puts an item when the garbage collector finds it, in whichever thread that runs, and notes
    that it has."""

    def __init__(self, queue, ended):
        self.queue, self.itself, self.ended = queue, self, ended

    def __del__(self):
        self.queue.put("finalizer")
        self.ended.append(self.queue)


def collect_until(ended, count):
    """Collect garbage until ``count`` finalizers have ended. A collection during another thread's
    one does nothing."""

    def collected():
        gc.collect()
        return len(ended) == count

    until(collected)


def in_first_thread():
    """Whether the call is not one of a background thread of an earlier test, at another file."""
    return threading.current_thread() is threading.main_thread()


@pytest.fixture
def thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("thresholds")
def test_puts_of_finalizers_in_the_midst_of_puts_and_gets(url):
    queue, ended = Queue(name="queue", url=url), []
    for number in range(1, 200):
        queue.put("first")
        Garbage(queue, ended)
        gc.set_threshold(number)
        queue.put("second")
        got = queue.get()
        gc.set_threshold(0)
        collect_until(ended, number)
        assert sorted([got, *rest(queue)]) == ["finalizer", "first", "second"], number


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("threshold", range(1, 6))
def test_puts_of_finalizers_in_the_midst_of_each_step_of_a_put(url, monkeypatch, threshold):
    queue, made, ended = Queue(name="queue", url=url), [], []
    queue.put("first")
    plain = store.SqliteTxn.set
    for step in range(5):
        steps = itertools.count()

        def interrupted(txn, key, value, step=step, steps=steps):
            if in_first_thread() and next(steps) == step:
                gc.collect()
                made.append(step)
                Garbage(queue, ended)
                gc.set_threshold(threshold)
            plain(txn, key, value)
            gc.set_threshold(0)

        with monkeypatch.context() as patch:
            patch.setattr(store.SqliteTxn, "set", interrupted)
            queue.put("put")
        collect_until(ended, len(made))
        assert sorted(rest(queue)) == ["finalizer"] * (step in made) + ["first", "put"]
        queue.put("first")


def test_the_file_is_locked_whenever_it_is_written(url, tmp_path, monkeypatch):
    queue = Queue(name="queue", url=url)
    queue.put("first")
    free = []
    plain = store.SqliteTxn.set
    with open(tmp_path / "queues-lock", "r+b") as other:

        def look(txn, key, value):
            with contextlib.suppress(BlockingIOError):
                fcntl.fcntl(other, store._TRY, store._LOCKED)
                fcntl.fcntl(other, store._TRY, store._FREE)
                if in_first_thread():
                    free.append(key)
            plain(txn, key, value)

        monkeypatch.setattr(store.SqliteTxn, "set", look)

        def check(interrupted, value):
            assert not free

        sweep(lambda: queue.put("put"), check, use=lambda: queue.put("handler"), every=1)


def test_a_transaction_of_the_program_in_the_midst_of_a_put(url, tmp_path):
    queue, other = Queue(name="queue", url=url), Queue(name="other", url=url)

    def use():
        with closing(sqlite3.connect(tmp_path / "queues")) as connection, connection:
            other.put("handler", connection=connection)

    def check(interrupted, value):
        assert rest(queue) == ["put"]
        assert rest(other) in ([], ["handler"])

    queue.put("first")
    assert rest(queue) + rest(other) == ["first"]
    sweep(lambda: queue.put("put"), check, use=use)


@pytest.fixture(params=[interrupting.Interrupted, interrupting.Alarm])
def error(request):
    return request.param


def test_a_put_that_an_exception_ends_is_done_or_not_done(url, error):
    queue = Queue(name="queue", url=url)

    def check(interrupted, value):
        assert rest(queue) in ([], ["put"]) if interrupted else rest(queue) == ["put"]

    sweep(lambda: queue.put("put"), check, error=error)


def test_the_item_of_a_get_that_an_exception_ended_goes_back(url, error):
    queue = Queue(name="queue", url=url)

    def check(interrupted, value):
        got = [] if interrupted else [value]
        assert got + [queue.get(timeout=LIMIT) for _ in range(3 - len(got))] == [0, 1, 2]
        assert queue.empty()

    sweep(queue.get, check, error=error, prepare=lambda: queue.put_many(range(3)))
