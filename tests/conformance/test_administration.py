"""What administrators do: list queues, look into them, clear and mend them. Of every engine."""

from __future__ import annotations

import asyncio
from functools import partial

import contents
import inside
import pytest
from waiting import LIMIT

import pressure_mp
from pressure_mp import (
    ArgumentError,
    DecodingError,
    Empty,
    FairQueue,
    JoinableQueue,
    LifoQueue,
    PriorityQueue,
    Queue,
    ShutDown,
    TaskQueue,
    aio,
)
from pressure_mp.operations.deliveries import DeliveryOperations

#: A process of another host.
ELSEWHERE = "elsewhere/1/1/aaaaaaaa"
KINDS = [Queue, LifoQueue, PriorityQueue, partial(FairQueue, str)]


def summary(url, name):
    (found,) = pressure_mp.list_queues(url=url, prefix=name)
    return found


@pytest.fixture
def make(full_url, name):
    """Makes a queue that is alone below its prefix."""
    return lambda kind, *args, **options: kind(
        *args, name="jobs", url=full_url, prefix=name, **options
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_look_shows_what_gets_would_return_in_their_order_and_takes_nothing(make, kind):
    queue = make(kind)
    queue.put_many([3, 1, 2])
    shown = queue.peek(9)
    assert sorted(shown) == [1, 2, 3]
    assert queue.peek() == shown[:1]
    assert queue.peek(2) == shown[:2]
    assert [queue.get() for _ in range(3)] == shown
    assert queue.peek() == []


def test_a_look_reads_the_content_of_a_large_item_and_refuses_what_cannot_be_decoded(make):
    queue = make(Queue)
    large = bytes(1 << 19)
    queue.put(large)
    assert queue.peek() == [large]
    assert queue.get() == large
    make(Queue, serializer="raw").put(b"no pickle")
    with pytest.raises(DecodingError):
        queue.peek()
    assert queue.qsize() == 1


@pytest.mark.parametrize("kind", KINDS)
def test_purged_items_are_gone_and_count_as_dealt_with(make, kind):
    queue = make(kind)
    assert queue.purge() == 0
    queue.put_many([1, 2])
    assert queue.purge() == 2
    assert queue.qsize() == 0
    with pytest.raises(Empty):
        queue.get_nowait()
    queue.put(3)
    assert queue.get() == 3


def test_a_purge_makes_space_and_leaves_items_in_flight(make):
    queue = make(JoinableQueue, 2)
    queue.put_many([1, 2])
    assert queue.get() == 1
    queue.put(3)
    assert queue.purge() == 2
    queue.put_many([4, 5], timeout=LIMIT)
    assert queue.unfinished_tasks == 3
    assert queue.stats().in_flight == 1
    queue.task_done()
    assert queue.unfinished_tasks == 2


@pytest.mark.parametrize("kind", [Queue, LifoQueue])
def test_an_item_that_was_set_aside_goes_back_and_counts_again(make, full_url, name, kind):
    queue = make(kind, 1)
    operations = inside.operations(queue)
    queue.put("again")
    inside.run(queue, operations.reject(inside.run(queue, operations.get(False, None))))
    queue.put("full")
    assert summary(full_url, name).rejected == 1
    assert inside.run(queue, operations.rejected(0)) == []
    assert queue.requeue_rejected() == 1
    assert queue.qsize() == 2
    assert {queue.get(), queue.get()} == {"again", "full"}
    assert (queue.rejected(), queue.requeue_rejected()) == ([], 0)
    assert queue.stats().unfinished == 2
    queue.put("space again")


def test_the_content_of_a_large_item_goes_back_with_it_and_goes_with_it(make):
    queue = make(Queue)
    operations = inside.operations(queue)
    large = contents.sample()
    inside.run(queue, operations.put(large, False, None))
    for settle in (queue.requeue_rejected, queue.drop_rejected):
        inside.run(queue, operations.reject(inside.run(queue, operations.get(False, None))))
        assert settle() == 1
        found = inside.run(queue, operations.peek_items(9))
        assert found == ([large.manifest] if settle == queue.requeue_rejected else [])


def test_where_an_item_belongs_must_be_known_to_put_it_back(make):
    queue = make(PriorityQueue)
    operations = inside.operations(queue)
    inside.run(queue, operations.reject(b"1"))
    with pytest.raises(ArgumentError, match="where an item belonged is not kept"):
        queue.requeue_rejected()
    assert queue.drop_rejected() == 1


def test_nothing_goes_back_into_a_queue_that_is_shut_down(make):
    queue = make(Queue)
    inside.run(queue, inside.operations(queue).reject(b"1"))
    queue.shutdown()
    with pytest.raises(ShutDown):
        queue.requeue_rejected()
    assert queue.rejected() == [b"1"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_listed_queue_says_how_it_is(make, full_url, name, kind):
    queue = make(kind, 5)
    queue.put_many([1, 2, 3])
    queue.get()
    queue.shutdown()
    found = summary(full_url, name)
    assert (found.name, found.length, found.maxsize, found.closed) == ("jobs", 2, 5, True)
    assert (found.produced, found.consumed) == (3, 1)
    assert (found.putting, found.getting, found.age, found.tasks) == (0, 0, None, {})


def test_a_listed_queue_of_tasks_says_how_many_are_in_which_state(make, full_url, name):
    queue = make(TaskQueue, keep=True)
    queue.put_many([1, 2, 3, 4])
    queue.put(5, delay=100)
    queue.take().ack()
    queue.take().bury()
    kept = queue.take()
    found = summary(full_url, name)
    assert found.tasks == {"R": 1, "W": 1, "T": 1, "B": 1, "Z": 0, "D": 1}
    assert (found.length, found.in_flight, found.rejected) == (1, 1, 1)
    assert (found.produced, found.consumed) == (5, 1)
    assert found.age is not None
    assert 0 <= found.age < 60
    kept.ack()


def test_findings_about_the_loss_of_data_come_with_advice(full_url):
    for finding in pressure_mp.examine_broker(url=full_url):
        assert finding.subject
        assert finding.problem.endswith((".", ")."))
        assert finding.advice.endswith(".")


def test_asyncio_has_the_same(full_url, name):
    async def main():
        async with aio.Queue(name="jobs", url=full_url, prefix=name) as queue:
            await queue.put_many([1, 2])
            assert await queue.peek(3) == [1, 2]
            (found,) = [one async for one in aio.list_queues(url=full_url, prefix=name)]
            assert (found.name, found.length) == ("jobs", 2)
            assert await queue.purge() == 2
            assert await queue.rejected() == []
            assert (await queue.requeue_rejected(), await queue.drop_rejected()) == (0, 0)
            assert await aio.examine_broker(url=full_url) == pressure_mp.examine_broker(
                url=full_url
            )

    asyncio.run(main())


def test_items_that_their_consumer_did_not_acknowledge_are_counted(make, full_url, name):
    queue = make(JoinableQueue)
    queue.open()
    queue.put_many(["a", "b", "c"])
    operations = DeliveryOperations("jobs", "fifo")

    def take(owner, call):
        taking = operations.take_many(owner, call, 0, 2, False, None)
        return [delivery.seq for delivery in inside.run(queue, taking)]

    first, second = take(ELSEWHERE, 1)
    inside.run(queue, operations.acknowledge(ELSEWHERE, first))
    assert summary(full_url, name).returned == 0
    inside.run(queue, operations.requeue(ELSEWHERE))
    assert summary(full_url, name).returned == 1
    assert take(ELSEWHERE, 2)[0] == second
    inside.run(queue, operations.requeue(ELSEWHERE))
    assert summary(full_url, name).returned == 3
    (again, _) = take(ELSEWHERE, 3)
    inside.run(queue, operations.requeue(ELSEWHERE, seqs=[again]))  # no call returned it
    assert summary(full_url, name).returned == 3
    queue.delete()
    make(JoinableQueue).open()
    assert summary(full_url, name).returned == 0
