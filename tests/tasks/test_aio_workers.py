"""Handlers that are run on tasks in an event loop: what every engine and server does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import pytest
from programs import aio_workers as programs
from tasks import backoffs
from waiting import LIMIT, until

import pressure_mp
from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    DecodingError,
    HandleClosedError,
    QueueDoesNotExistError,
    aio,
)


@pytest.fixture
def run(url, name):
    """Runs a program with a queue."""

    def run(program, **options):
        async def main():
            async with aio.TaskQueue(name, url=url, **options) as queue:
                await asyncio.wait_for(program(queue), LIMIT)

        asyncio.run(main())

    yield run
    with contextlib.suppress(QueueDoesNotExistError):
        pressure_mp.TaskQueue.attach(name, url=url).delete()


async def counts(queue):
    return {state: number for state, number in (await queue.stats()).counts.items() if number}


async def until_counts(queue, expected):
    while await counts(queue) != expected:
        await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def running(queue, handler=None, **options):
    """A run beside the block, which ends it."""
    stop = asyncio.Event()
    one = asyncio.ensure_future(queue.run(handler, stop=stop, **options))
    try:
        yield one
    finally:
        stop.set()
        await one


class Hand:
    """A handler that says what it has got, and finishes when it may."""

    def __init__(self):
        self.begun = asyncio.Queue()
        self.may_end = asyncio.Event()
        self.at_work = self.most = 0
        self.seen = []
        self.cancelled = []

    async def __call__(self, task):
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        self.begun.put_nowait(task)
        try:
            await self.may_end.wait()
            self.seen.append(task.data)
        except asyncio.CancelledError:
            self.cancelled.append(task.data)
            raise
        finally:
            self.at_work -= 1


# The states of a task after its handler


def test_a_task_is_acknowledged_when_its_handler_returns(run):
    async def program(queue):
        seen = []

        async def handler(task):
            await asyncio.sleep(0)
            assert isinstance(task, aio.Task)
            seen.append(task.data)

        await queue.put_many("abc")
        async with running(queue, handler):
            await until_counts(queue, {})
        assert seen == ["a", "b", "c"]
        assert (await queue.stats()).transitions == {"X-R": 3, "R-T": 3, "T-X": 3}

    run(program)


def test_so_many_handlers_as_it_says_work_at_the_same_time(run):
    async def program(queue):
        hand = Hand()
        await queue.put_many(range(10))
        async with running(queue, hand, concurrency=4):
            for _ in range(4):
                await hand.begun.get()
            assert (await counts(queue)) == {"T": 4, "R": 6}
            hand.may_end.set()
            await until_counts(queue, {})
        assert hand.most == 4
        assert sorted(hand.seen) == list(range(10))

    run(program)


def test_tasks_that_come_later_are_worked_on(run):
    async def program(queue):
        hand = Hand()
        hand.may_end.set()
        async with running(queue, hand, concurrency=2):
            for number in range(5):
                await queue.put(number)
                await hand.begun.get()
        assert hand.seen == list(range(5))
        assert await counts(queue) == {}

    run(program)


def test_a_task_that_fails_is_released_with_its_error_and_logged(run, caplog):
    async def program(queue):
        task_id = await queue.put("a")
        errors = []

        async def handler(task):
            errors.append(task.error)
            if task.deliveries == 1:
                raise ValueError("not yet")

        async with running(queue, handler):
            await until_counts(queue, {})
        assert errors == [None, "ValueError: not yet"]
        (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
        assert record.name == "pressure_mp"
        assert record.exc_info[1].args == ("not yet",)
        assert repr(task_id) in record.getMessage()

    run(program)


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"backoff": lambda deliveries: 3600 * deliveries}, "W"), ({"on_error": "bury"}, "B")],
    ids=["backoff", "bury"],
)
def test_a_task_that_fails_waits_or_is_buried(run, options, expected):
    async def program(queue):
        await queue.put("a")

        async def handler(task):
            raise KeyError(task.data)

        async with running(queue, handler, **options):
            await until_counts(queue, {expected: 1})
        assert [task.error for task in await queue.list()] == ["KeyError: 'a'"]

    run(program)


@pytest.mark.parametrize(
    ("verb", "expected"), [("release", {"W": 1}), ("bury", {"B": 1}), ("ack", {})]
)
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("is_plain", [False, True], ids=["coroutine", "function"])
def test_a_task_that_its_handler_settled_stays_so(run, verb, expected, raises, is_plain, caplog):
    async def program(queue):
        await queue.put("a")
        loop, returned = asyncio.get_running_loop(), asyncio.Event()
        options = {"delay": 3600} if verb == "release" else {}

        async def handler(task):
            await getattr(task, verb)(**options)
            returned.set()
            if raises:
                raise ValueError

        def function(task):
            getattr(task, verb)(**options)
            loop.call_soon_threadsafe(returned.set)
            if raises:
                raise ValueError

        async with running(queue, function if is_plain else handler):
            await returned.wait()
        assert await counts(queue) == expected
        assert len(caplog.records) == raises

    run(program)


def test_a_handler_that_comes_too_late_changes_nothing_and_is_logged(run, caplog):
    async def program(queue):
        task_id = await queue.put("a")

        async def handler(task):
            if task.deliveries == 1:
                await queue.snatch(task_id)

        async with running(queue, handler):
            await until_counts(queue, {})
        assert "too late" in caplog.text
        assert (await queue.stats()).transitions == {"X-R": 1, "R-T": 2, "T-R": 1, "T-X": 1}

    run(program)


def test_a_handler_hears_at_once_that_its_ttr_is_over(run, caplog):
    async def program(queue):
        await queue.put("a")
        seen = []

        async def handler(task):
            while task.deliveries == 1 and not seen:
                await asyncio.sleep(0.002)
                if "its ttr is over" in caplog.text:
                    seen.append(caplog.text)

        async with running(queue, handler, ttr=0.2):
            await until_counts(queue, {})
        assert "its handler goes on" in seen[0]
        assert "too late" not in seen[0]

    run(program)


def test_a_coroutine_beyond_its_time_limit_is_cancelled_and_its_task_fails(run, caplog):
    async def program(queue):
        await queue.put("a")
        ended = []

        async def handler(task):
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(task.is_late)

        async with running(queue, handler, time_limit=0.1):
            await until_counts(queue, {"W": 1})
        (task,) = await queue.list()
        assert task.error == "TimeoutError: the handler took longer than its time_limit of 0.1 s"
        assert ended == [True]

    run(program)


def test_a_coroutine_beyond_its_time_limit_may_still_return(run):
    """As when it cleans up, and has done its work."""

    async def program(queue):
        await queue.put("a")

        async def handler(task):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

        async with running(queue, handler, time_limit=0.1):
            await until_counts(queue, {})

    run(program)


def test_a_handler_in_a_thread_beyond_its_time_limit_is_late(run, caplog):
    async def program(queue):
        await queue.put("a")
        seen = []

        def handler(task):
            seen.append(task.is_late)
            until(lambda: "goes on beyond its time_limit" in caplog.text)
            seen.append(task.is_late)

        async with running(queue, handler, time_limit=0.1):
            await until_counts(queue, {})
        assert seen == [False, True]

    run(program)


def test_a_handler_that_touches_its_task_in_time_hears_nothing_of_its_ttr(run, caplog):
    async def program(queue):
        await queue.put("a")

        async def handler(task):
            await task.touch(3600)
            await asyncio.sleep(1.2)  # beyond the ttr

        async with running(queue, handler, ttr=1.0):
            await until_counts(queue, {})
        assert "ttr" not in caplog.text

    run(program)


def test_a_task_that_cannot_be_decoded_is_buried_and_the_others_go_on(run, caplog, name, url):
    async def program(queue):
        await aio.TaskQueue(name, url=url, serializer="raw").put(b"{")
        await queue.put("a")

        async def handler(task):
            pass

        async with running(queue, handler):
            await until_counts(queue, {"B": 1})
        assert caplog.records[0].exc_info[0] is DecodingError

    run(program, serializer="json")


def test_a_handler_that_is_cancelled_by_itself_fails_and_the_others_go_on(run, caplog):
    async def program(queue):
        await queue.put_many("ab")
        seen = []

        async def handler(task):
            if task.data == "a" and task.deliveries == 1:
                asyncio.current_task().cancel()
                await asyncio.sleep(0)
            seen.append(task.data)

        async with running(queue, handler):
            await until_counts(queue, {})
        assert sorted(seen) == ["a", "b"]

    run(program)


def test_registered_handlers_run_together_each_with_its_options(run):
    async def program(queue):
        seen = []

        @queue.worker(tube="x", concurrency=2)
        async def one(task):
            seen.append(("one", task.data))

        @queue.worker(tube="y", on_error="bury")
        def other(task):
            seen.append(("other", task.data))
            raise ValueError

        await queue.put(1, tube="x")
        await queue.put(2, tube="y")
        with pytest.raises(ArgumentError, match="worker"):
            await queue.run(concurrency=2)
        async with running(queue):
            await until_counts(queue, {"B": 1})
        assert sorted(seen) == [("one", 1), ("other", 2)]
        assert one.__name__ == "one"

    run(program)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"concurrency": 0}, ArgumentError),
        ({"on_error": "bury", "backoff": 1}, ArgumentError),
        ({"grace": -1}, ArgumentError),
        ({"handler": "print"}, ArgumentTypeError),
        ({"handler": None}, ArgumentError),
        ({"executor": "threads"}, ArgumentTypeError),
    ],
    ids=str,
)
def test_wrong_arguments_of_run_are_an_error_at_once(run, options, error):
    async def program(queue):
        with pytest.raises(error):
            await queue.run(**{"handler": print, **options})

    run(program)


def test_a_coroutine_is_not_for_an_executor_and_a_closed_handle_runs_nothing(run):
    async def program(queue):
        with ThreadPoolExecutor() as executor, pytest.raises(ArgumentError, match="loop"):
            queue.worker(executor=executor)(Hand())
        await queue.close()
        with pytest.raises(HandleClosedError):
            await queue.run(print)

    run(program)


# Plain functions


def test_a_function_runs_in_threads_of_its_own_beside_the_loop(run):
    async def program(queue):
        together = threading.Barrier(3)
        names = set()

        def handler(task):
            assert isinstance(task, pressure_mp.Task)
            together.wait(LIMIT)
            thread = threading.current_thread()
            names.add((thread.name, thread.daemon))
            task.touch(3600)

        await queue.put_many(range(9))
        async with running(queue, handler, concurrency=3):
            await until_counts(queue, {})
        assert names == {(f"{queue.name} worker", True)}

    run(program)


def test_the_threads_of_a_run_end_with_it(run):
    async def program(queue):
        threads = []
        await queue.put("a")

        async with running(queue, lambda task: threads.append(threading.current_thread())):
            await until_counts(queue, {})
        threads[0].join(LIMIT)
        assert not threads[0].is_alive()

    run(program)


def test_a_function_that_returns_a_coroutine_has_it_awaited(run):
    async def program(queue):
        seen = []

        async def work(task):
            seen.append(task.data)

        await queue.put("a")
        async with running(queue, lambda task: work(task)):
            await until_counts(queue, {})
        assert seen == ["a"]

    run(program)


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration()], ids=repr)
def test_an_exception_of_a_function_is_kept_with_the_task(run, error):
    async def program(queue):
        await queue.put("a")

        def handler(task):
            raise error

        async with running(queue, handler, on_error="bury"):
            await until_counts(queue, {"B": 1})
        assert "StopIteration" in (text := (await queue.list())[0].error) or "no" in text

    run(program)


@pytest.mark.parametrize("is_plain", [False, True], ids=["coroutine", "function"])
def test_a_task_is_not_acknowledged_when_what_its_handler_put_cannot_be_sent(
    full_url, name, is_plain, caplog
):
    """An item that is put into a queue that sends in the background is at the broker first."""

    async def main():
        results = pressure_mp.Queue(url=full_url, buffering=1000)
        ours = aio.Queue.of(results)

        async def handler(task):
            await ours.put(task.data)

        def function(task):
            results.put(task.data)

        async with aio.TaskQueue(name, url=full_url) as queue:
            await queue.put("a")
            async with running(queue, function if is_plain else handler):
                await until_counts(queue, {})
                assert await aio.Queue.of(results).get_nowait() == "a"
            await aio.Queue.of(results).shutdown()
            await queue.put("b")
            async with running(queue, function if is_plain else handler, backoff=3600):
                await asyncio.sleep(0)
                while (await queue.stats()).transitions["R-T"] < 2:
                    await asyncio.sleep(0.001)
                if is_plain:  # else the worker may end before the function has failed
                    await until_counts(queue, {"W": 1})
            assert await counts(queue) == {"W" if is_plain else "R": 1}
            await queue.delete()

    asyncio.run(main())


# Executors


@pytest.fixture
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def test_a_function_runs_in_processes_on_the_data_of_the_tasks(run, processes, tmp_path):
    async def program(queue):
        await queue.put_many((str(tmp_path), number) for number in range(4))
        async with running(queue, programs.square, concurrency=2, executor=processes):
            await until_counts(queue, {})
        assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3"]
        assert str(os.getpid()) not in {path.read_text() for path in tmp_path.iterdir()}
        assert (await queue.stats()).transitions["T-X"] == 4

    run(program)


def test_an_exception_of_a_function_in_a_process_is_kept_with_the_task(run, processes):
    async def program(queue):
        await queue.put("stop")
        async with running(queue, programs.stop_or_die, executor=processes, on_error="bury"):
            await until_counts(queue, {"B": 1})
        assert "StopIteration" in (await queue.list())[0].error

    run(program)


def test_a_process_that_is_killed_ends_the_run_and_its_task_is_given_back(run, processes, caplog):
    async def program(queue):
        await queue.put("die")
        with pytest.raises(BrokenProcessPool):
            await queue.run(programs.stop_or_die, executor=processes)
        assert await counts(queue) == {"W": 1}
        assert "BrokenProcessPool" in (await queue.list())[0].error

    run(program)


# Its end


def test_a_stopped_run_finishes_its_tasks_and_begins_no_others(run):
    async def program(queue):
        hand, stop = Hand(), asyncio.Event()
        await queue.put_many("abc")
        one = asyncio.ensure_future(queue.run(hand, concurrency=2, stop=stop, grace=None))
        await hand.begun.get()
        await hand.begun.get()
        stop.set()
        await asyncio.sleep(0)
        hand.may_end.set()
        await one
        assert sorted(hand.seen) == ["a", "b"]
        assert await counts(queue) == {"R": 1}

    run(program)


@pytest.mark.usefixtures("no_ticks")
def test_a_stopped_run_that_waits_for_tasks_ends_at_once_and_keeps_no_place_in_line(run):
    async def program(queue):
        stop = asyncio.Event()
        one = asyncio.ensure_future(queue.run(Hand(), concurrency=3, stop=stop))
        await asyncio.sleep(0.1)  # by now they wait
        assert not one.done()
        stop.set()
        await one
        task_id = await queue.put("a")
        assert (await queue.take(0.1)).id == task_id

    run(program, lease=3600)


def test_a_run_ends_when_the_queue_is_shut_down_and_no_task_is_ready(run):
    async def program(queue):
        hand = Hand()
        hand.may_end.set()
        one = asyncio.ensure_future(queue.run(hand, concurrency=2))
        await queue.put_many(range(5))
        await queue.shutdown()
        await one
        assert sorted(hand.seen) == list(range(5))
        assert await counts(queue) == {}

    run(program)


def test_a_task_that_is_not_finished_within_the_grace_is_cancelled_and_given_back(run, caplog):
    async def program(queue):
        hand, stop = Hand(), asyncio.Event()
        task_id = await queue.put("a")
        one = asyncio.ensure_future(queue.run(hand, grace=0.05, stop=stop, on_error="bury"))
        await hand.begun.get()
        stop.set()
        await one
        assert hand.cancelled == ["a"]
        assert await counts(queue) == {"R": 1}
        assert "before it was finished" in (await queue.peek(task_id)).error
        assert "before it was finished" in caplog.text

    run(program)


def test_a_handler_that_finishes_although_it_is_cancelled_has_finished(run):
    async def program(queue):
        begun, stop = asyncio.Event(), asyncio.Event()

        async def handler(task):
            begun.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

        await queue.put("a")
        one = asyncio.ensure_future(queue.run(handler, grace=0, stop=stop))
        await begun.wait()
        stop.set()
        await one
        assert (await queue.stats()).transitions == {"X-R": 1, "R-T": 1, "T-X": 1}

    run(program)


def test_a_handler_that_does_not_heed_its_cancellation_is_left_behind(run, monkeypatch):
    monkeypatch.setattr("pressure_mp.aio.tasks.worker_pool._CLEANING", 0.05)

    async def program(queue):
        begun, stop, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def handler(task):
            begun.set()
            while not go_on.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await go_on.wait()

        await queue.put("a")
        one = asyncio.ensure_future(queue.run(handler, grace=0, stop=stop))
        await begun.wait()
        stop.set()
        await one
        assert await counts(queue) == {"R": 1}
        go_on.set()

    run(program)


def test_a_thread_that_does_not_return_within_its_grace_is_left_behind(run):
    async def program(queue):
        go_on, stop, begun = threading.Event(), asyncio.Event(), asyncio.Event()
        loop, late = asyncio.get_running_loop(), []

        def handler(task):
            loop.call_soon_threadsafe(begun.set)
            go_on.wait(LIMIT)
            try:
                task.ack()
            except pressure_mp.NotTaken as error:
                late.append(error)
            loop.call_soon_threadsafe(stop.clear)

        await queue.put("a")
        one = asyncio.ensure_future(queue.run(handler, grace=0.05, stop=stop))
        await begun.wait()
        stop.set()
        await one
        assert await counts(queue) == {"R": 1}
        go_on.set()
        while stop.is_set():
            await asyncio.sleep(0.001)
        assert len(late) == 1

    run(program)


def test_a_cancelled_run_finishes_its_task_and_then_raises_the_cancellation(run):
    async def program(queue):
        hand = Hand()
        await queue.put_many("ab")
        one = asyncio.ensure_future(queue.run(hand, grace=None))
        await hand.begun.get()
        one.cancel()
        await asyncio.sleep(0.01)
        assert not one.done()
        hand.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert hand.seen == ["a"]
        assert await counts(queue) == {"R": 1}

    run(program)


def test_a_second_cancellation_ends_the_time_that_tasks_have(run):
    async def program(queue):
        hand = Hand()
        await queue.put("a")
        one = asyncio.ensure_future(queue.run(hand, grace=None))
        await hand.begun.get()
        one.cancel()
        await asyncio.sleep(0.01)
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        assert hand.cancelled == ["a"]
        assert await counts(queue) == {"R": 1}

    run(program)


def test_a_loop_that_ends_leaves_no_task_taken(url, name):
    """``asyncio.run`` cancels all that is left: the run, its workers and its handlers."""
    queue = pressure_mp.TaskQueue(name, url=url, lease=3600)
    queue.put_many("abc")

    async def main():
        hand, ours = Hand(), aio.TaskQueue.of(queue)
        one = asyncio.ensure_future(ours.run(hand, concurrency=2, grace=None))
        await hand.begun.get()
        await hand.begun.get()
        assert not one.done()

    asyncio.run(main())
    assert queue.stats().counts["T"] == 0
    assert queue.stats().counts["R"] == 3
    queue.delete()


def test_a_run_raises_what_no_task_can_help(run):
    async def program(queue):
        one = asyncio.ensure_future(queue.run(Hand()))
        await asyncio.sleep(0.05)
        await queue.delete()
        with pytest.raises(QueueDoesNotExistError):
            await one

    run(program)


@pytest.mark.parametrize("is_plain", [False, True], ids=["coroutine", "function"])
def test_a_handler_that_exits_ends_the_run_and_its_task_is_given_back(url, name, is_plain):
    queue = pressure_mp.TaskQueue(name, url=url)
    queue.put("a")

    async def handler(task):
        raise SystemExit(3)

    def function(task):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        asyncio.run(aio.TaskQueue.of(queue).run(function if is_plain else handler, concurrency=2))
    assert queue.stats().counts["R"] == 1
    queue.delete()


@pytest.mark.parametrize("backoff", backoffs.WRONG)
def test_a_task_whose_backoff_fails_waits_as_by_default_and_the_run_goes_on(
    run, backoff, caplog, monkeypatch
):
    backoffs.have_long_default(monkeypatch)

    async def program(queue):
        id, last = await queue.put_many(["a", "b"])

        async def handler(task):
            raise ValueError("no")

        await queue.run(handler, backoff=backoff, max_tasks=2)
        for one in (id, last):
            task = await queue.peek(one)
            assert backoffs.is_default(task)
            assert task.error == "ValueError: no"
            assert backoffs.told(caplog, task, queue)

    run(program)


# Signals


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]


@pytest.fixture
def heard():
    """Both signals are handled, also where this process was started with one that is ignored."""
    before = [
        (number, signal.signal(number, signal.default_int_handler))
        for number in (signal.SIGTERM, signal.SIGINT)
    ]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.usefixtures("heard")
def test_a_signal_ends_all_runs_of_a_loop_and_all_is_as_before(run):
    async def program(queue):
        loop, heard = asyncio.get_running_loop(), []
        before = handlers()
        hands = [Hand(), Hand()]
        await queue.put_many("ab")
        runs = [asyncio.ensure_future(queue.run(hand, grace=None)) for hand in hands]
        for hand in hands:
            await hand.begun.get()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.01)
        assert not any(one.done() for one in runs)
        hands[0].may_end.set()
        await runs[0]
        os.kill(os.getpid(), signal.SIGINT)
        await runs[1]
        assert (hands[0].seen, hands[1].seen) == ([hands[0].seen[0]], [])
        assert await counts(queue) == {"R": 1}
        assert handlers() == before

        loop.add_signal_handler(signal.SIGTERM, heard.append, "mine")
        async with running(queue, hands[0]):
            await until_counts(queue, {})
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.01)
        assert heard == ["mine"]
        loop.remove_signal_handler(signal.SIGTERM)

    run(program)
