"""The task that sends for handles of asyncio: several queues, errors, and its cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys

import inside
import pytest
import started
from oracle import loops
from programs import aio_queues as programs
from waiting import LIMIT

from pressure_mp import Full, PressureError, Queue, QueueDoesNotExistError, ShutDown, aio
from pressure_mp.operations.items import ItemOperations


@pytest.fixture
def make(url, name):
    """Makes handles, each to a queue of its own, that send in the background."""
    made = []

    def make(which, kind=aio.Queue, **options):
        q = kind(name=f"{name}-{which}", url=url, **{"buffering": 1000, **options})
        made.append(q)
        return q

    yield make
    for q in made:
        with contextlib.suppress(QueueDoesNotExistError):
            Queue.attach(q.name, url=url).delete()


async def everything(q):
    return [await q.get_nowait() for _ in range(await q.qsize())]


@pytest.mark.parametrize("how", ["delete", "shutdown"])
def test_the_end_of_a_queue_takes_nothing_of_what_was_put_into_others(make, how):
    async def main():
        ending, other = make("ending"), make("other")
        await ending.put("opens it")
        await other.put("opens it")
        await other.flush()
        for number in range(10):
            await ending.put(number)
        await asyncio.sleep(0)  # they are on their way
        for number in range(10):
            await other.put(number)
        await (ending.delete() if how == "delete" else ending.shutdown(immediate=True))
        await other.flush()
        return await everything(other)

    assert loops.run(main) == ["opens it", *range(10)]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_sender_that_is_cancelled_sends_nothing_twice(own_server, name, times):
    async def main():
        q = aio.Queue(name=name, url=own_server.url, buffering=1000)
        await q.put("opens it")
        await q.flush()
        with own_server.stopped():
            for number in range(100):
                await q.put(number)
            await asyncio.sleep(0.01)
            (sender,) = inside.senders_in_loop()
            for _ in range(times):
                sender.cancel()
                await asyncio.sleep(0.01)
        unknown = []
        try:
            await q.flush()
        except PressureError as error:
            unknown = error.rest
        return await everything(q), unknown

    got, unknown = loops.run(main)
    assert got[0] == "opens it"
    assert got[1:] == list(range(100)) or (unknown == list(range(100)) and got[1:] == [])
    assert times > 1 or not unknown


@pytest.mark.parametrize("kind", [aio.Queue, aio.JoinableQueue])
def test_task_done_tells_that_the_result_could_not_be_sent(make, url, kind):
    """Else the result is lost, and counts as made."""

    async def main():
        jobs, results = kind(url=url, name=make("jobs").name), make("results")
        await jobs.put("job")
        await results.put("opens it")
        await results.flush()
        job = await jobs.get()
        Queue.attach(results.name, url=url).delete()
        await results.put(job)
        with pytest.raises(QueueDoesNotExistError) as raised:
            await jobs.task_done()
        assert raised.value.rest == ["job"]
        assert await jobs.unfinished_tasks() == 1

    loops.run(main)


@pytest.mark.parametrize("immediate", [True, False])
def test_only_a_shutdown_that_drops_what_is_queued_lets_task_done_leave_out_a_refused_put(
    make, immediate
):
    async def main():
        jobs = make("jobs", aio.JoinableQueue)
        await jobs.put("job")
        job = await jobs.get()
        await jobs.put("of")
        await jobs.flush()
        await make("jobs").shutdown(immediate=immediate)
        await jobs.put(job)
        if not immediate:
            with pytest.raises(ShutDown) as raised:
                await jobs.task_done()
        await jobs.task_done()
        assert await jobs.unfinished_tasks() == (not immediate)
        if immediate:
            with pytest.raises(ShutDown) as raised:
                await jobs.flush()
        assert (raised.value.immediate, raised.value.rest) == (immediate, ["job"])

    loops.run(main)


def test_a_put_that_lets_others_run_and_is_cancelled_then_puts_nothing(make):
    async def main():
        q = make("queue")
        put = 0
        for number in range(250):
            putting = asyncio.ensure_future(q.put(number))
            await asyncio.sleep(0)
            if putting.done():
                put += 1
                continue
            putting.cancel()
            await asyncio.wait([putting])
            put += not putting.cancelled()
        await q.flush()
        return put, await q.qsize()

    put, length = loops.run(main)
    assert put == length < 250


def test_items_that_were_not_sent_are_reported_at_the_end_if_no_call_reported_them(server, name):
    ended = subprocess.run(
        [sys.executable, programs.__file__, "put_into_deleted_queue", server.url, name],
        env=started.environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert ended.returncode == 0
    assert f"3 items that were put on queue {name!r} were not sent" in ended.stderr


def test_a_bound_that_is_set_later_does_not_delay_puts_into_other_queues(make, url):
    async def main():
        q, other = make("queue"), make("other")
        await q.put("first")
        await q.flush()
        Queue.attach(q.name, url=url).maxsize = 2
        for number in range(5):
            await q.put(number)
        await other.put("passes by")
        await other.flush()
        assert await q.qsize() == 6
        assert await q.full()
        with pytest.raises(Full):
            await q.put_nowait("too many")
        with pytest.raises(Full):
            await q.put("too many", timeout=0.01)
        got = [await q.get() for _ in range(6)]
        await q.put_nowait("there is space")
        return [*got, await q.get(timeout=LIMIT)]

    assert loops.run(main) == ["first", *range(5), "there is space"]


def test_a_queue_that_stays_full_does_not_keep_the_loop_from_ending(make, url):
    async def main():
        q = make("queue")
        await q.put("first")
        await q.flush()
        Queue.attach(q.name, url=url).maxsize = 1
        await q.put("there is no space")
        await loops.until(lambda: inside.outgoing_in_loops(q)[0].is_unsure)

    loops.run(main)
    q = Queue.attach(make("queue").name, url=url)
    assert q.get_nowait() == "first"
    assert q.empty()


def test_a_full_queue_keeps_back_no_other_when_the_loop_ends(make, url):
    """Items of two queues wait to be sent when the loop ends, and the first queue has no space."""

    async def main():
        full, other = make("full"), make("other")
        for q in (full, other):
            await q.put("first")
            await q.flush()
        Queue.attach(full.name, url=url).maxsize = 1
        await full.put("there is no space")
        await other.put("second")

    loops.run(main)
    assert list(everything_of(Queue.attach(f"{make('other').name}", url=url))) == [
        "first",
        "second",
    ]


def test_items_wait_in_a_bounded_number_after_an_error_was_dropped(make, monkeypatch):
    def fail(*args):
        raise MemoryError("there is none")

    async def main():
        q = make("queue", buffering=3)
        await q.put("opens it")
        await q.flush()
        (puts,) = inside.outgoing_in_loops(q)
        with monkeypatch.context() as patch:
            patch.setattr(ItemOperations, "put_batch", fail)
            await q.put("not sent")
            await loops.until(lambda: puts.pending.has_failed)
        puts.discard()
        assert puts.pending.limit == 3

    loops.run(main)


@pytest.mark.parametrize("how", ["delete", "shutdown"])
def test_a_batch_on_its_way_is_waited_for_before_the_queue_ends(make, url, monkeypatch, how):
    """Else it could come to another queue of that name."""
    arrived = []

    async def main():
        q = make("queue")
        await q.put("opens it")
        await q.flush()
        (puts,) = inside.outgoing_in_loops(q)
        send, begins, may_go_on = puts.send, asyncio.Event(), asyncio.Event()

        async def send_late(batch, waits):
            begins.set()
            await may_go_on.wait()
            number = await send(batch, waits)
            arrived.append(number)
            return number

        monkeypatch.setattr(puts, "send", send_late)
        await q.put("on its way")
        await begins.wait()
        ending = asyncio.ensure_future(q.delete() if how == "delete" else q.shutdown(True))
        await asyncio.sleep(0.05)
        assert not ending.done()
        may_go_on.set()
        await ending
        assert arrived == [1]

    loops.run(main)


def everything_of(q):
    while not q.empty():
        yield q.get_nowait()


def test_any_error_of_what_sends_is_raised_with_the_items(make, monkeypatch):
    def fail(*args):
        raise MemoryError("there is none")

    async def main():
        q = make("queue")
        await q.put("opens it")
        await q.flush()
        with monkeypatch.context() as patch:
            patch.setattr(ItemOperations, "put_batch", fail)
            await q.put("not sent")
            with pytest.raises(PressureError, match="there is none") as raised:
                await q.flush()
        assert raised.value.rest == ["not sent"]
        await q.put("sent")
        await q.flush()
        return await everything(q)

    assert loops.run(main) == ["opens it", "sent"]


def test_items_wait_in_a_bounded_number_of_bytes(own_server, name):
    item = b"x" * 200_000

    async def main():
        q = aio.Queue(name=name, url=own_server.url, buffering=1000)
        await q.put(item)
        await q.flush()
        with own_server.stopped():
            putting = [asyncio.ensure_future(q.put(item)) for _ in range(120)]
            await asyncio.sleep(0.1)
            waiting = sum(not one.done() for one in putting)
        await asyncio.gather(*putting)
        await q.flush()
        return waiting, await q.qsize()

    waiting, length = loops.run(main)
    assert waiting == 120 - (1 << 24) // (len(item) + 30)
    assert length == 121


def test_a_handle_counts_the_items_that_its_loop_put_through_another(make, url):
    async def main():
        one = make("queue")
        other = aio.Queue(name=one.name, url=url)
        for number in range(300):
            await one.put(number)
        return await other.qsize(), (await other.stats()).length

    assert loops.run(main) == (300, 300)
