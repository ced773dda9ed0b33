"""Executors on every engine: calls, futures, map. The workers are threads of the test."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import itertools
import multiprocessing
import pickle
import sys
import threading
import time
import weakref
from concurrent import futures

import pytest
from executors import functions
from waiting import until

from pressure_mp import (
    BrokerFull,
    BrokerUnavailable,
    CallAborted,
    CallDecodingError,
    Executor,
    ExecutorBroken,
    ExecutorShutDown,
    InboxLost,
    QueueDoesNotExistError,
    QueueMismatchError,
    TaskInbox,
    TaskNotFound,
    TaskQueue,
)


def test_futures_are_futures_of_the_standard_library(executor, workers):
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


def test_futures_come_as_they_are_completed(executor, workers, tmp_path):
    go_on = tmp_path / "go on"
    held = executor.submit(functions.hold, str(tmp_path / "running"), str(go_on))
    quick = executor.submit(abs, -1)
    workers.begin(2)
    completed = futures.as_completed([held, quick], 30)
    assert next(completed) is quick
    first = futures.wait([held, quick], 30, futures.FIRST_COMPLETED)
    assert first == ({quick}, {held})
    go_on.touch()
    assert list(completed) == [held]


def test_asyncio_awaits_futures_and_takes_their_calls_back(executor, workers):
    delayed = executor.options(delay=3600).submit(abs, -1)
    workers.begin()

    async def ask():
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(executor, abs, -7) == 7
        assert await asyncio.wrap_future(executor.submit(pow, 2, 5)) == 32
        with pytest.raises(ZeroDivisionError):
            await asyncio.wrap_future(executor.submit(divmod, 1, 0))
        waiting = asyncio.wrap_future(delayed)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(ask())
    assert delayed.cancelled()
    with pytest.raises(TaskNotFound):
        executor._queue.peek(delayed.id)


@pytest.mark.parametrize("leave", [sys.exit, functions.leave, functions.leave_event_loop])
def test_a_call_that_exits_raises_systemexit_and_its_worker_goes_on(leave, executor, workers):
    workers.begin()
    future = executor.submit(leave, 3)
    with pytest.raises(SystemExit) as caught:
        future.result(30)
    assert caught.value.code == 3
    assert executor.submit(abs, -1).result(30) == 1


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


@pytest.fixture
def lost(executor):
    """The future of a call that was running, and that its worker has given back."""
    future = executor.submit(abs, -1)
    call = executor._queue.take()
    until(future.running)
    call.release()
    return future


def test_a_call_that_waits_for_another_worker_can_be_aborted(executor, lost):
    assert not lost.cancel()
    assert executor.abort(lost)
    with pytest.raises(CallAborted):
        lost.result(30)
    assert executor._queue.qsize() == 0
    assert not executor.abort(lost)


def test_the_worker_that_has_an_aborted_call_is_killed(executor, lost, monkeypatch):
    killed = []
    monkeypatch.setattr(executor._manager.workers, "kill", killed.append)
    owner = executor._queue.take().owner
    assert executor.abort(lost)
    assert killed == [owner]
    assert owner


def test_a_call_that_is_given_back_while_it_is_aborted_costs_no_worker(executor, lost, monkeypatch):
    killed, queue = [], executor._queue
    monkeypatch.setattr(executor._manager.workers, "kill", killed.append)
    remove, call = queue._operations.remove, queue.take()

    def give_back_meanwhile(id):
        """The operation; the call is given back when it was seen that a worker has it."""
        removing = remove(id)
        reply = yield next(removing)
        request = removing.send(reply)
        call.release()
        while True:
            try:
                request = removing.send((yield request))
            except StopIteration as ended:
                return ended.value

    monkeypatch.setattr(queue._operations, "remove", give_back_meanwhile)
    assert executor.abort(lost)
    assert killed == [""]
    with pytest.raises(CallAborted):
        lost.result(30)


def test_calls_are_watched_again_when_the_broker_refuses_that_at_first(
    executor, workers, monkeypatch
):
    """Their notices are lost, and the next try finds what became of them."""
    first = executor.submit(abs, 0)
    workers.begin(1)
    inbox = executor._manager.client._inbox
    take, watch, losses, refusals = inbox.take, inbox.watch, iter([0]), iter([0])

    def lose():
        heard = take()
        if next(losses, None) is not None:
            raise InboxLost
        return heard

    def refuse(ids):
        if next(refusals, None) is not None:
            raise BrokerFull
        watch(ids)

    monkeypatch.setattr(inbox, "take", lose)
    monkeypatch.setattr(inbox, "watch", refuse)
    assert first.result(30) == 0
    assert [executor.submit(abs, number).result(30) for number in (-1, -2, -3)] == [1, 2, 3]
    assert next(refusals, None) is None


def test_an_executor_asks_a_broker_that_is_away_now_and_then(executor, monkeypatch):
    tries = itertools.count()

    def refuse(inbox):
        next(tries)
        raise BrokerUnavailable

    monkeypatch.setattr(TaskInbox, "take", refuse)
    executor.submit(abs, 0)
    time.sleep(1.2)
    assert next(tries) <= 3


def test_shutdown_can_cancel_calls_that_no_worker_took(executor, workers, tmp_path):
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


def test_a_call_that_cannot_be_pickled_fails_its_own_future(executor, workers):
    workers.begin()
    with pytest.raises(TypeError, match="lock"):
        executor.submit(threading.Lock()).result(30)
    with pytest.raises(TypeError, match="lock"):
        executor.submit(threading.Lock).result(30)
    with pytest.raises(CallDecodingError, match="exception of the call") as caught:
        executor.submit(functions.raise_unpicklable).result(30)
    assert "this and that" in str(caught.value.__cause__)
    assert executor.submit(abs, -1).result(30) == 1


def test_the_end_of_a_pipe_is_no_part_of_a_call_or_of_its_result(executor, workers):
    workers.begin()
    with contextlib.ExitStack() as stack:
        ours, theirs = map(stack.enter_context, multiprocessing.Pipe())
        for args in ((print, theirs), (lambda: ours,), (functools.partial(print, [theirs]),)):
            with pytest.raises(TypeError, match="end of a pipe"):
                executor.submit(*args).result(30)
    for make in (multiprocessing.Pipe, lambda: multiprocessing.Pipe()):
        with pytest.raises(TypeError, match="end of a pipe"):
            executor.submit(make).result(30)
    assert executor.submit(abs, -1).result(30) == 1


def test_an_exception_that_can_be_had_comes_whatever_its_class_forbids(executor, workers):
    workers.begin()
    for kind in (functions.Frozen, functions.Mute):
        with pytest.raises(kind) as caught:
            executor.submit(functions.throw, kind).result(30)
        assert "in throw" in str(caught.value.__cause__)


def test_an_argument_result_or_exception_that_cannot_be_sent_fails_its_own_future(
    executor, workers
):
    workers.begin()
    with pytest.raises(CallDecodingError, match=r"exception of the call .* an object of type str"):
        executor.submit(functions.throw, functions.Disguised).result(30)
    with pytest.raises(pickle.PicklingError, match="cannot be"):
        executor.submit(functions.throw, functions.Boxed).result(30)
    with pytest.raises(CallDecodingError, match="result of the call"):
        executor.submit(functions.Trap).result(30)
    with pytest.raises(CallDecodingError, match="worker could not unpickle"):
        executor.submit(abs, functions.Trap()).result(30)
    assert executor.submit(abs, -1).result(30) == 1


def test_a_callback_that_ends_the_listening_thread_breaks_the_executor(executor, workers):
    exiting = executor.submit(abs, -1)
    others = [executor.options(delay=3600).submit(abs, -1) for _ in range(2)]
    for future in (exiting, *others):
        future.add_done_callback(functions.leave)
    workers.begin()
    assert exiting.result(30) == 1
    for future in others:
        with pytest.raises(ExecutorBroken, match="gets no more notices of its calls: SystemExit"):
            future.result(30)
    assert "no more notices" in executor._broken
    with pytest.raises(ExecutorBroken):
        executor.submit(abs, -1)
    assert executor._queue.qsize() == 0


def test_a_function_without_a_name_is_pickled_by_cloudpickle_where_it_is_installed(
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


def test_a_call_that_pickle_cannot_encode_is_given_to_cloudpickle_at_once(
    executor, workers, tmp_path
):
    workers.begin()
    path = str(tmp_path / "tries")
    assert executor.submit(functions.Tried, path).result(30) == "made"
    assert len(functions.runs(path)) == 2  # once by each of the two


class Noting:
    """A serializer that notes what it encoded."""

    def __init__(self):
        self.encoded = []

    def dumps(self, obj):
        self.encoded.append(obj)
        return pickle.dumps(obj)


def test_the_serializer_of_an_executor_encodes_its_calls(url, executor, workers):
    workers.begin()
    noting = Noting()
    with Executor.attach(executor.name, url=url, serializer=noting) as other:
        assert other.submit(pow, 2, exp=5).result(30) == 32
    assert noting.encoded == [(pow, (2,), {"exp": 5})]


def test_a_module_as_serializer_is_the_only_one(url, executor, workers):
    workers.begin()
    with (
        Executor.attach(executor.name, url=url, serializer=pickle) as other,
        pytest.raises(Exception, match="lambda"),
    ):
        other.submit(lambda: 7).result(30)
    cloudpickle = pytest.importorskip("cloudpickle")
    with Executor.attach(executor.name, url=url, serializer=cloudpickle) as other:
        assert other.submit(lambda: 7).result(30) == 7


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


def test_attach_refuses_a_queue_of_tasks_that_no_executor_made(url, name):
    queue = TaskQueue(name, url=url)
    queue.open()
    with pytest.raises(QueueMismatchError, match=r"id='time64'.* no executor made it"):
        Executor.attach(name, url=url)
    queue.delete()


def test_a_task_that_is_no_call_is_buried_and_its_worker_goes_on(executor, workers, url):
    queue = TaskQueue.attach(executor.name, url=url)
    for id, data in (("text", "hello"), ("none", None)):
        queue.put(data, id=id)
    workers.begin()
    assert executor.submit(abs, -1).result(30) == 1
    assert [(task.id, task.data) for task in queue.list("B")] == [("text", "hello"), ("none", None)]
    assert queue.peek("text").error == "no call of an executor, but str"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_workers": 0}, "max_workers must be greater than 0"),
        ({"max_workers": -1, "name": "a name"}, "max_workers must be greater than 0"),
        ({"max_tasks_per_child": 0}, "max_tasks_per_child is 1 or more"),
        ({"max_deliveries": 0}, "max_deliveries is 1 or more"),
        ({"max_pending": 0}, "max_pending is 1 or more"),
        ({"serializer": "json"}, "serializer is 'pickle' or an object with dumps"),
    ],
)
def test_a_wrong_option_is_a_value_error(options, error):
    with pytest.raises(ValueError, match=error):
        Executor(url="memory://arguments", **options)


def test_worker_processes_are_refused_where_they_cannot_see_the_queue():
    with pytest.raises(ValueError, match="cannot see a queue at memory://"):
        Executor(1, url="memory://processes")
