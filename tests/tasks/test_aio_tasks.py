"""Queues of tasks in asyncio: every verb, waiting, cancellation, and handles that go elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import random
import warnings
from types import SimpleNamespace

import inside
import pytest
import started
from programs import closed_loops
from tasks import backoffs
from waiting import HOURS, LIMIT

import pressure_mp
from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    DecodingError,
    Empty,
    HandleClosedError,
    NotOwner,
    NotTaken,
    QueueAlreadyExistsError,
    QueueDoesNotExistError,
    RejectedItemWarning,
    ShutDown,
    TaskExists,
    TaskNotFound,
    TaskState,
    WrongState,
    aio,
)
from pressure_mp.engines.contract.tasks import TakeTasks


@pytest.fixture
def make(url, name):
    return lambda **options: aio.TaskQueue(name, url=url, **options)


@pytest.fixture
def run(make, url, name):
    """Runs a program with a queue; nothing stays taken that it does not leave so."""

    def run(program, **options):
        async def main():
            async with make(**options) as queue:
                return await program(queue)

        return asyncio.run(main())

    yield run
    with contextlib.suppress(QueueDoesNotExistError):
        pressure_mp.TaskQueue.attach(name, url=url).delete()


async def counts(queue):
    return {state: number for state, number in (await queue.stats()).counts.items() if number}


async def parked(*waiting):
    """Wait until these calls wait: 0.2 s are enough to ask the broker."""
    for _ in range(200):
        await asyncio.sleep(0.001)
    assert not any(one.done() for one in waiting)


# Every verb


def test_tasks_are_put_taken_and_acknowledged(run):
    async def program(queue):
        ids = [await queue.put("a"), *await queue.put_many("bc")]
        assert await queue.qsize() == 3
        first = await queue.take()
        assert isinstance(first, aio.Task)
        assert (first.id, first.data, first.state, first.deliveries) == (ids[0], "a", "T", 1)
        second = await queue.take(ack=first)
        assert (first.state, second.data) == ("X", "b")
        await second.ack()
        assert second.state == "X"
        third = await queue.take()
        with pytest.raises(Empty) as caught:
            await queue.take(0.01, ack=third)
        assert isinstance(caught.value, asyncio.QueueEmpty)
        assert third.state == "X"
        assert (await queue.stats()).transitions == {"X-R": 3, "R-T": 3, "T-X": 3}

    run(program)


def test_a_taken_task_is_released_buried_and_touched(run):
    async def program(queue):
        await queue.put("a", priority=1)
        (task,) = await queue.take_many(5)
        due = task.due
        await task.touch(3600)
        assert task.due > due + 3000
        await task.release(delay=3600, update=str.upper, error="later")
        assert (task.state, task.data, task.error) == (TaskState.WAITING, "A", "later")
        assert (await queue.restart(task)).state == task.state == "R"
        task = await queue.take()
        await task.bury(error="no good")
        assert [(one.data, one.error) for one in await queue.list("buried")] == [("A", "no good")]
        assert (await queue.kick(task.id, update="B")).data == "B"
        task = await queue.take()
        assert (await queue.release(task.id, tube="x", priority=5)).tube == "x"
        with pytest.raises(NotTaken):
            await task.ack()
        task = await queue.take(tube="x")
        assert (await queue.touch(task.id)).id == task.id
        assert (await queue.bury(task.id)).state == "B"
        assert await queue.kick_many() == 1
        task = await queue.take(0)
        assert (await queue.ack(task)).state == "X"
        with pytest.raises(TaskNotFound):
            await queue.peek(task.id)

    run(program, ttr=60)


def test_an_administrator_looks_and_puts_right(run):
    async def program(queue):
        one, two = await queue.put_many([1, 2], tube="x")
        assert (await queue.move(one, None)).tube is None
        assert await queue.qsize("x") == 1
        assert (await queue.switch(two, "waiting", delay=3600)).state == "W"
        with pytest.raises(ArgumentError, match="zombies"):
            await queue.switch(two, "zombie")
        with pytest.raises(WrongState):
            await queue.kick(two)
        task = await queue.take(0)
        assert (await queue.snatch(task)).state == task.state == "R"
        assert (await queue.kill(task)).state == task.state == "X"
        assert [one.id for one in await queue.list()] == [two]
        assert await queue.truncate() == 1
        assert (await queue.stats()).rates is not None

    run(program)


def test_many_are_acknowledged_and_those_that_cannot_be_are_told(run):
    async def program(queue):
        await queue.put_many(range(3))
        tasks = await queue.take_many(3)
        await tasks[1].ack()
        with pytest.raises(TaskNotFound) as caught:
            await queue.ack_many(tasks)
        assert (caught.value.accepted, caught.value.rest) == (2, [tasks[1]])
        assert [task.state for task in tasks] == ["X", "X", "X"]

    run(program)


def test_a_put_can_wait_until_its_task_was_processed(run):
    async def program(queue):
        waiting = asyncio.ensure_future(queue.put(12, wait=LIMIT))
        task = await queue.take()
        again = asyncio.ensure_future(queue.wait(task.id, LIMIT))
        await parked(waiting, again)
        await task.ack(update=144)
        for one in (waiting, again):
            found, processed = await one
            assert isinstance(found, aio.Task)
            assert (found.data, found.state, processed) == (144, "Z", True)

    run(program, zombie=3600)


def test_arguments_are_checked_as_elsewhere(run):
    async def program(queue):
        for call, error in (
            (queue.put(1, delay=1, ttl=1), ArgumentError),
            (queue.put(1, priority="high"), ArgumentTypeError),
            (queue.put_many([1, 2], ids=[1]), ArgumentError),
            (queue.take(ack="a task"), ArgumentTypeError),
            (queue.take("soon"), ArgumentTypeError),
            (queue.take(on_error="ignore"), ArgumentError),
            (queue.take_many(0), ArgumentError),
            (queue.list("lost"), ArgumentError),
            (queue.kick_many(-1), ArgumentError),
        ):
            with pytest.raises(error):
                await call
        await queue.put(1, id=7)
        with pytest.raises(TaskExists):
            await queue.put(1, id=7)

    run(program)


def test_a_task_that_cannot_be_decoded_is_buried(run, name, url):
    async def program(queue):
        raw = aio.TaskQueue(name, url=url, serializer="raw")
        await raw.put(b"{")
        with pytest.raises(DecodingError):
            await queue.take(0)
        await raw.put(b"{")
        await queue.put("good")
        with pytest.warns(RejectedItemWarning) as caught:
            (task,) = await queue.take_many(5)
        assert caught[0].filename == __file__
        assert task.data == "good"
        await task.ack()
        assert await counts(queue) == {"B": 2}
        await raw.put(b"{")
        await queue.put("good")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RejectedItemWarning):
                await queue.take_many(5)
        assert await counts(queue) == {"R": 1, "B": 3}, "no task is taken that was not returned"

    run(program, serializer="json")


# The queue


def test_a_queue_is_created_attached_shut_down_and_deleted(url, name):
    async def main():
        with pytest.raises(QueueDoesNotExistError):
            await aio.TaskQueue.attach(name, url=url)
        queue = await aio.TaskQueue.create(name, url=url, ttr=5, keep=True)
        with pytest.raises(QueueAlreadyExistsError):
            await aio.TaskQueue.create(name, url=url)
        assert (queue.settings.ttr, queue.settings.keep) == (5000, True)
        other = await aio.TaskQueue.attach(name, url=url)
        assert other.settings == queue.settings
        assert not await other.is_shutdown()
        await queue.shutdown()
        assert await other.is_shutdown()
        with pytest.raises(ShutDown) as caught:
            await other.take()
        assert isinstance(caught.value, aio.QueueShutDown)
        assert await other.exists()
        await other.delete()
        assert not await queue.exists()

    asyncio.run(main())


def test_settings_are_known_when_the_queue_is_open(make):
    queue = make()
    with pytest.raises(ArgumentError, match="not open yet"):
        print(queue.settings)
    asyncio.run(queue.delete())
    assert queue.settings.max_deliveries == 20


def test_an_anonymous_queue_ends_with_its_handle(full_url):
    async def main():
        async with aio.TaskQueue(url=full_url) as queue:
            await queue.put("a")
            assert (await queue.take()).data == "a"
        with pytest.raises(HandleClosedError):
            await queue.put("b")
        with pytest.raises(HandleClosedError):
            await queue.exists() or await queue.qsize()

    asyncio.run(main())


def test_a_closed_handle_takes_and_puts_nothing_but_settles_what_was_taken(run):
    async def program(queue):
        await queue.put("a")
        task = await queue.take()
        await queue.close()
        for call in (queue.put(1), queue.put_many([1]), queue.take(), queue.take_many(1)):
            with pytest.raises(HandleClosedError):
                await call
        await task.ack()
        assert task.state == "X"

    run(program)


def test_a_closed_handle_that_was_never_open_does_not_open_the_queue(make, url, name):
    async def main():
        queue = make()
        await queue.close()
        with pytest.raises(HandleClosedError):
            await queue.take()

    asyncio.run(main())
    with pytest.raises(QueueDoesNotExistError):
        pressure_mp.TaskQueue.attach(name, url=url)


def test_a_queue_of_threads_is_one_of_asyncio_too(url, name):
    queue = pressure_mp.TaskQueue(name, url=url)

    async def main():
        ours = aio.TaskQueue.of(queue)
        assert ours.sync is queue
        queue.put("a")
        task = await ours.take()
        queue.ack(task)
        await ours.put("b")
        async with await ours.take(ack=None) as task:
            assert queue.peek(task.id).state == "T"
        assert queue.stats().transitions == {"X-R": 2, "R-T": 2, "T-X": 2}
        with pytest.raises(ArgumentTypeError, match="takes a TaskQueue"):
            aio.TaskQueue.of(aio)

    asyncio.run(main())
    queue.delete()


def test_a_handle_is_pickled_once_it_is_open(run, url):
    async def program(queue):
        await queue.put("a")
        copy = pickle.loads(pickle.dumps(queue))
        task = await copy.take()
        assert copy.settings == queue.settings
        await queue.ack(task.id)

    with pytest.raises(ArgumentError, match="not open yet"):
        pickle.dumps(aio.TaskQueue("a", url=url))
    run(program)


# A task as a context manager


@pytest.mark.parametrize("error", [None, ValueError("no")], ids=["returns", "raises"])
def test_a_block_acknowledges_its_task_or_releases_it(run, error):
    async def program(queue):
        await queue.put("a")
        with contextlib.suppress(ValueError):
            async with await queue.take(backoff=lambda deliveries: 3600) as task:
                if error:
                    raise error
        if error is None:
            assert (task.state, await counts(queue)) == ("X", {})
        else:
            assert (task.state, task.error) == ("W", "ValueError: no")
            assert await counts(queue) == {"W": 1}

    run(program)


@pytest.mark.parametrize("backoff", backoffs.WRONG)
def test_a_block_raises_its_own_error_also_where_its_backoff_fails(run, backoff, monkeypatch):
    backoffs.have_long_default(monkeypatch)

    async def program(queue):
        id = await queue.put("a")
        with pytest.raises(ZeroDivisionError):
            async with await queue.take(backoff=backoff):
                raise ZeroDivisionError("by zero")
        task = await queue.peek(id)
        assert backoffs.is_default(task)
        assert task.error == "ZeroDivisionError: by zero"

    run(program)


def test_a_block_buries_its_task_if_so_said(run):
    async def program(queue):
        await queue.put("a")
        with pytest.raises(KeyError):
            async with await queue.take(on_error="bury") as task:
                raise KeyError(task.data)
        assert (task.state, task.error) == ("B", "KeyError: 'a'")

    run(program)


def test_a_task_that_its_block_settled_stays_so(run):
    async def program(queue):
        await queue.put("a")
        async with await queue.take() as task:
            await task.bury()
        assert await counts(queue) == {"B": 1}

    run(program)


@pytest.mark.parametrize("again", [0, 1, 3])
def test_a_block_that_is_cancelled_releases_its_task_however_often_it_is_cancelled(run, again):
    async def program(queue):
        await queue.put("a")
        begun = asyncio.Event()

        async def work():
            async with await queue.take(on_error="bury"):
                begun.set()
                await asyncio.Event().wait()

        working = asyncio.ensure_future(work())
        await begun.wait()
        working.cancel()
        for _ in range(again):
            await asyncio.sleep(0)
            working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await counts(queue) == {"R": 1}, "released when the block has ended"
        task = await queue.take(0)
        assert (task.error, task.deliveries) == (None, 2)

    run(program)


def test_a_block_that_is_cancelled_while_it_acknowledges_has_acknowledged(run):
    async def program(queue):
        await queue.put("a")
        leaving = asyncio.Event()

        async def work():
            async with await queue.take():
                leaving.set()

        working = asyncio.ensure_future(work())
        await leaving.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert (await queue.stats()).transitions == {"X-R": 1, "R-T": 1, "T-X": 1}

    run(program)


def test_a_block_that_lost_its_task_raises_its_own_error(run):
    async def program(queue):
        await queue.put("a")

        async def lose(error):
            async with await queue.take() as task:
                await queue.snatch(task.id)
                if error:
                    raise error
                await queue.take()

        with pytest.raises(KeyError):
            await lose(KeyError())
        with pytest.raises(NotOwner):
            await lose(None)

    run(program)


# Waiting


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("tube", [None, "a"])
def test_waiting_takes_are_woken(run, tube):
    async def program(queue):
        takers = [asyncio.ensure_future(queue.take(tube=tube)) for _ in range(3)]
        await parked(*takers)
        for data in range(3):
            await queue.put(data, tube=tube)
        tasks = await asyncio.gather(*takers)
        assert sorted(task.data for task in tasks) == [0, 1, 2]
        waiting = asyncio.ensure_future(queue.take(tube=tube))
        await parked(waiting)
        await queue.shutdown()
        with pytest.raises(ShutDown):
            await waiting

    run(program)


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("tube", [None, "a"])
def test_a_task_that_woke_a_cancelled_take_goes_to_another_take(run, tube):
    async def program(queue):
        for _ in range(20):
            cancelled, other = (asyncio.ensure_future(queue.take(tube=tube)) for _ in range(2))
            await asyncio.sleep(0.005)
            await queue.put("data", tube=tube)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            if not cancelled.cancelled():
                await cancelled.result().ack()
                await queue.put("data", tube=tube)
            await (await other).ack()

    run(program)


@pytest.mark.parametrize("act", ["put", "take"])
def test_a_call_that_a_closed_loop_left_does_not_keep_the_next_call_waiting(url, name, act):
    here, there = started.quickly.Pipe()
    child = started.quickly.Process(target=closed_loops.leave_a_call, args=(there, url, name, act))
    child.start()
    there.close()
    assert here.poll(LIMIT)
    assert here.recv() == "next"
    child.join()


def test_a_taker_is_served_while_another_waits_for_another_tube(run):
    async def program(queue):
        other = asyncio.ensure_future(queue.take(tube="b"))
        await parked(other)
        await queue.put(1, tube="a")
        assert (await queue.take(tube="a")).data == 1
        assert not other.done()
        await queue.put(2, tube="b")
        assert (await other).data == 2

    run(program)


def test_a_take_that_waits_for_a_time_says_that_it_is_over(run):
    async def program(queue):
        with pytest.raises(Empty, match="still after"):
            await queue.take(0.01)

    run(program)


# Cancelled takes


@pytest.mark.parametrize("many", [False, True], ids=["take", "take_many"])
def test_cancellations_at_any_moment_lose_no_task_and_leave_none_taken(run, many):
    """A task that a cancelled take had got was given back before the take ended: it is ready, or
    another take has it."""

    async def program(queue):
        random.seed(4)
        delivered = []

        async def taker():
            while True:
                tasks = await queue.take_many(3) if many else [await queue.take()]
                delivered.extend(task.data for task in tasks)
                await queue.ack_many(tasks) if many else await tasks[0].ack()

        async def putter():
            for number in range(0, 150, 5):
                await queue.put_many(range(number, number + 5))
                await asyncio.sleep(random.random() * 0.004)

        putting = asyncio.ensure_future(putter())
        while not putting.done():
            takes = [
                asyncio.ensure_future(queue.take_many(3) if many else queue.take())
                for _ in range(4)
            ]
            for take in takes:
                # Mostly while its request is on its way.
                for _ in range(random.randrange(40)):
                    await asyncio.sleep(0)
                take.cancel()
            for take in takes:
                with contextlib.suppress(asyncio.CancelledError):
                    tasks = await take
                    for task in tasks if many else [tasks]:
                        delivered.append(task.data)
                        await task.ack()
            assert "T" not in await counts(queue), "no task is taken that no call returned"
        rest = asyncio.ensure_future(taker())
        while await counts(queue):
            await asyncio.sleep(0.001)
        rest.cancel()
        await asyncio.wait([rest])
        assert sorted(delivered) == list(range(150)), "each was delivered to one, once"
        now = (await queue.stats()).transitions
        assert now["X-R"] == now["T-X"] == 150
        assert now["R-T"] == 150 + now.get("T-R", 0)

    run(program, lease=3600)


class CancelledWithReply:
    """A binding whose sessions cancel the task that takes, when the reply has come."""

    def __init__(self, binding):
        self._binding = binding

    def asession(self):
        session = self._binding.asession()
        call = session.call

        async def call_and_be_cancelled(request, *args):
            reply = await call(request, *args)
            if isinstance(request, TakeTasks):
                raise asyncio.CancelledError
            return reply

        return SimpleNamespace(call=call_and_be_cancelled, wait=session.wait, end=session.end)


@pytest.mark.usefixtures("no_looks")
def test_a_take_that_is_cancelled_with_its_reply_gives_back_what_it_took(run):
    async def program(queue):
        await queue.put_many("ab")
        binding = inside.binding(queue.sync)
        inside.rebind(queue.sync, CancelledWithReply(binding))
        with pytest.raises(asyncio.CancelledError):
            await queue.take_many(2)
        inside.rebind(queue.sync, binding)
        assert await counts(queue) == {"R": 2}
        assert (await queue.stats()).transitions == {"X-R": 2, "R-T": 2, "T-R": 2}

    run(program, lease=HOURS)


def test_keys_take_turns_and_a_slot_that_comes_free_wakes_a_waiting_take(run):
    async def program(queue):
        await queue.put_many(["a1", "a2"], key="a")
        await queue.put("b1", key="b")
        tasks = [await queue.take(0), await queue.take(0)]
        assert [(task.data, task.key) for task in tasks] == [("a1", "a"), ("b1", "b")]
        waiting = asyncio.create_task(queue.take(LIMIT))
        with pytest.raises(Empty):
            await queue.take(0)
        await tasks[0].ack()
        assert (await waiting).data == "a2"

    run(program, per_key=1)
