"""Executors on every engine: calls, futures, map. The workers are threads of the test."""

from __future__ import annotations

import asyncio
import collections
import gc
import itertools
import sys
import threading
import time
import weakref
from concurrent import futures

import pytest
from executors import functions
from waiting import Background, until

from pressure_mp import (
    CallDecodingError,
    Executor,
    ExecutorShutDown,
    Full,
    QueueDoesNotExistError,
    TaskNotFound,
)
from pressure_mp.executor import worker


class Workers:
    """Threads that do what worker processes do. They begin when the test says so."""

    def __init__(self, executor):
        self._executor = executor
        self._is_over = threading.Event()
        self._threads = []

    def begin(self, number=1):
        for _ in range(number):
            args = self._executor._queue, self._is_over.is_set, None, lambda task: None
            self._threads.append(Background(worker.serve, *args))

    def end(self):
        self._is_over.set()
        self._executor._queue.shutdown()
        for thread in self._threads:
            thread.result()


@pytest.fixture
def executor(url, name):
    with Executor(0, name, url=url) as executor:
        yield executor
        executor.shutdown(cancel_futures=True)
    executor._queue.delete()


@pytest.fixture
def workers(executor):
    workers = Workers(executor)
    yield workers
    workers.end()


def test_futures_are_those_of_the_standard_library(executor, workers):
    workers.begin(2)
    first = executor.submit(pow, 2, exp=5)
    second = executor.submit(divmod, 1, 0)
    assert isinstance(first, futures.Future)
    assert futures.wait([first, second], 30).not_done == set()
    assert first.result() == 32
    with pytest.raises(ZeroDivisionError) as caught:
        second.result()
    assert "Traceback" in str(caught.value.__cause__) or "ZeroDivision" in str(
        caught.value.__cause__
    )

    async def ask():
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor, abs, -7)

    assert asyncio.run(ask()) == 7


def test_a_future_runs_when_a_worker_takes_its_call_and_until_then_it_can_be_cancelled(
    executor, workers, tmp_path
):
    running, go_on = tmp_path / "running", tmp_path / "go on"
    held = executor.submit(functions.hold, str(running), str(go_on))
    queued = executor.submit(functions.note, str(tmp_path / "cancelled"))
    assert not held.running()
    workers.begin()
    until(held.running)
    assert not held.cancel()
    assert queued.cancel()
    assert queued.cancelled()
    assert futures.wait([queued], 0).done == {queued}
    with pytest.raises(TaskNotFound):
        executor._queue.peek(queued.id)
    go_on.touch()
    assert held.result(30) == "held"
    assert executor.submit(abs, -1).result(30) == 1
    assert functions.runs(str(tmp_path / "cancelled")) == []


def test_shutdown_can_cancel_what_nobody_took(executor, workers, tmp_path):
    running, go_on = tmp_path / "running", tmp_path / "go on"
    held = executor.submit(functions.hold, str(running), str(go_on))
    queued = [executor.submit(abs, -1) for _ in range(3)]
    workers.begin()
    until(held.running)
    executor.shutdown(wait=False, cancel_futures=True)
    assert all(future.cancelled() for future in queued)
    with pytest.raises(ExecutorShutDown, match="cannot schedule new futures after shutdown"):
        executor.submit(abs, -1)
    go_on.touch()
    executor.shutdown()
    assert held.result(0) == "held"


def test_what_cannot_be_pickled_fails_its_own_future(executor, workers):
    workers.begin()
    with pytest.raises(TypeError, match="lock"):
        executor.submit(threading.Lock()).result(30)
    with pytest.raises(TypeError, match="lock"):
        executor.submit(threading.Lock).result(30)
    with pytest.raises(CallDecodingError, match="exception of the call") as caught:
        executor.submit(functions.raise_unpicklable).result(30)
    assert "this and that" in str(caught.value.__cause__)
    assert executor.submit(abs, -1).result(30) == 1


def test_what_has_no_name_is_pickled_by_cloudpickle_where_that_is_installed(
    executor, workers, monkeypatch
):
    workers.begin()
    assert executor.submit(lambda: 7).result(30) == 7
    assert executor.submit(functions.return_lambda).result(30)() is None
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # as if it were not
    with pytest.raises(Exception, match="lambda"):
        executor.submit(lambda: 7).result(30)
    with pytest.raises(Exception, match="lambda"):
        executor.submit(functions.return_lambda).result(30)


def test_what_pickle_cannot_do_goes_to_cloudpickle_at_once(executor, workers, tmp_path):
    workers.begin()
    path = str(tmp_path / "tries")
    assert executor.submit(functions.Tried, path).result(30) == "made"
    assert len(functions.runs(path)) == 2  # once by each of the two


def test_large_results_come_whole_and_an_array_can_be_written_to(executor, workers):
    numpy = pytest.importorskip("numpy")
    workers.begin()
    assert executor.submit(bytes, 300_000).result(30) == bytes(300_000)
    found = executor.submit(numpy.ones, 100_000).result(30)
    found += 1
    assert found.sum() == 200_000


def test_map_draws_no_more_inputs_than_its_buffer(executor, workers):
    workers.begin()
    drawn = itertools.count()
    found = executor.map(abs, drawn, buffersize=3)
    assert next(drawn) == 3
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    assert next(drawn) == 7
    del found
    assert list(executor.map(pow, range(5), range(5), chunksize=2)) == [1, 1, 4, 27, 256]
    unordered = executor.map(abs, range(9), chunksize=2, buffersize=2, unordered=True)
    assert sorted(unordered) == list(range(9))


def test_an_iterator_does_not_keep_the_executor(url, name):
    executor = Executor(0, name, url=url)
    queue, gone = executor._queue, weakref.ref(executor)
    found = executor.options(priority=1).map(abs, itertools.count(), buffersize=2)
    del executor
    gc.collect()
    assert gone() is None
    for id in [task.id for task in queue.list()]:
        queue.kill(id)
    with pytest.raises(futures.CancelledError):
        next(found)
    queue.delete()


def test_options_of_calls(executor, workers):
    late = executor.submit(list, "late")
    soon = executor.options(priority=-1).submit(list, "soon")
    delayed = executor.options(delay=3600).submit(list, "never")
    order = []
    for future in (late, soon):
        future.add_done_callback(order.append)
    workers.begin()
    futures.wait([late, soon], 30)
    assert order == [soon, late]
    assert delayed.cancel()


def test_calls_of_keys_take_turns_and_so_many_of_one_run_at_a_time(url, name):
    with Executor(0, name, url=url, per_key=1) as executor:
        workers = Workers(executor)
        running, most, order = collections.Counter(), collections.Counter(), []
        calls.update({name: (running, most, order)})
        futures_of = [
            executor.options(key=key).submit(note_that_it_runs, name, key) for key in "aaab"
        ]
        workers.begin(3)
        futures.wait(futures_of, 30)
        assert "".join(sorted(order)) == "aaab"
        assert set(most.values()) == {1}
        assert Executor.attach(name, url=url)._queue.settings.per_key == 1
        workers.end()
    executor._queue.delete()


#: What the threads of a test note, by the executor's name.
calls: dict[str, tuple] = {}


def note_that_it_runs(name, key):
    running, most, order = calls[name]
    running[key] += 1
    most[key] = max(most[key], running[key])
    order.append(key)
    time.sleep(0.002)  # others may begin meanwhile
    running[key] -= 1


def test_submit_blocks_while_too_many_calls_wait_for_workers(url, name):
    with Executor(0, name, url=url, max_pending=2) as executor:
        workers = Workers(executor)
        first = [executor.submit(abs, -1) for _ in range(2)]
        with pytest.raises(Full, match="max_pending=2"):
            executor.options(block=False).submit(abs, -2)
        third = Background(executor.submit, abs, -3)
        assert first[0].cancel()
        assert not third.result().done()
        workers.begin()
        assert third.result().result(30) == 3
        workers.end()
    executor._queue.delete()


def test_another_client_gets_the_future_again(executor, workers, url):
    future = executor.submit(pow, 3, 2)
    failing = executor.submit(divmod, 1, 0)
    waiting = executor.options(delay=3600).submit(abs, 1)
    workers.begin()
    futures.wait([future, failing], 30)
    with Executor.attach(executor.name, url=url) as other:
        assert other.future(future.id).result(30) == 9
        with pytest.raises(ZeroDivisionError):
            other.future(failing.id).result(30)
        with pytest.raises(TaskNotFound):
            other.future("nobody-7").result(30)
        assert other.future(waiting.id).cancel()
        with pytest.raises(futures.CancelledError):
            waiting.result(30)


def test_attach_wants_an_executor_that_is_there(url, name):
    with pytest.raises(QueueDoesNotExistError):
        Executor.attach(name, url=url)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_workers": 0}, "max_workers must be greater than 0"),
        ({"max_workers": -1, "name": "a name"}, "max_workers must be greater than 0"),
        ({"max_tasks_per_child": 0}, "max_tasks_per_child must be >= 1"),
        ({"max_deliveries": 0}, "max_deliveries is 1 or more"),
        ({"max_pending": 0}, "max_pending is 1 or more"),
        ({"serializer": "json"}, "serializer is 'pickle' or an object with dumps"),
    ],
)
def test_what_cannot_be_used_is_a_value_error(options, error):
    with pytest.raises(ValueError, match=error):
        Executor(url="memory://arguments", **options)
