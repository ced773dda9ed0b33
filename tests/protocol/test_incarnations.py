"""Data that are kept beside a queue are that queue's. A later queue of the same name, which another
implementation created after it had deleted the first, does not have them."""

from __future__ import annotations

import contextlib
import multiprocessing

import contents as large_contents
import engines
import pytest
from brokers.servers import Server
from engines import Can
from oracle.delivery_clients import Broker, ended
from stepwise import Stop
from waiting import LIMIT, Background, until

from pressure_mp import (
    Empty,
    JoinableQueue,
    Queue,
    QueueDoesNotExistError,
    ShutDown,
    TaskDoneError,
)
from pressure_mp.engines.contract.items import EndPrefetch, Prefetch
from pressure_mp.engines.contract.queues import How
from pressure_mp.engines.contract.replies import NoItem, Outcome
from pressure_mp.engines.redis import keys

A, B = "elsewhere/1/1/aaaaaaaa", "elsewhere/2/1/bbbbbbbb"

#: The keys beside a queue that do not say which client has a role or waits just now.
KEPT = sorted(
    set(keys.OWN)
    - {"producer_granted", "producer_holder", "consumer_granted", "consumer_holder"}
    - {"deleting", "waiting"}
)


@pytest.fixture
def broker(server, name):
    """Operations of ours, in the name of any process."""
    return Broker(server.url, name)


@pytest.fixture
def again(theirs, broker):
    """Theirs deletes the queue and creates it again, with so many items put and got since."""

    def again(passed: int = 0, bound: int = 0) -> None:
        other = theirs()
        other.delete()
        other.create(bound)
        for _ in range(passed):
            other.put(b"theirs")
            other.get()

    return again


@pytest.fixture
def kept(client, broker):
    """Which of the keys beside the protocol's there are."""

    def read() -> set[str]:
        return {part for part in KEPT if client.exists(broker.binding.key(part))}

    return read


#: As many as a former queue had; and more, so that every counter passed what it was.
PASSED = [0, 1, 5]


@pytest.mark.parametrize("passed", PASSED)
def test_join_and_unfinished_tasks_count_this_queue_only(server, name, again, passed):
    q = Queue(name=name, url=server.url)
    for number in range(3):
        q.put(number)
        q.get()
        q.task_done()
    again(passed)
    assert q.unfinished_tasks == passed
    for _ in range(passed):
        q.task_done()
    q.join()
    with pytest.raises(TaskDoneError):
        q.task_done()
    q.put("new")
    assert q.unfinished_tasks == 1
    joining = Background(q.join)
    q.get()
    q.task_done()
    joining.result()


@pytest.mark.parametrize("passed", PASSED)
def test_rejected_items_of_a_deleted_queue_do_not_pass_to_the_next_queue(broker, again, passed):
    broker.open()
    broker.put(b"bad")
    broker.run(broker.operations.reject(broker.get()))
    again(passed)
    assert broker.run(broker.operations.rejected(9)) == []
    assert broker.run(broker.operations.stats()).rejected == 0


@pytest.mark.parametrize("passed", PASSED)
def test_a_shutdown_with_immediate_drops_nothing_of_another_queue(broker, again, passed):
    broker.open()
    broker.run(broker.operations.close(True, None, once=False, immediate=True))
    again(passed)
    broker.put(b"new")
    broker.take(A)
    broker.requeue(A)
    assert broker.drain() == [b"new"]


@pytest.mark.parametrize("passed", PASSED)
def test_items_in_flight_of_a_deleted_queue_are_not_requeued_in_the_next_queue(
    broker, again, passed
):
    broker.open()
    broker.fill(5)
    broker.take(A, 2)
    broker.fetch(f"{B}#1", 2)
    again(passed)
    broker.requeue(A)
    broker.requeue(B)
    stats = broker.run(broker.operations.stats())
    assert (stats.length, stats.in_flight, stats.unfinished) == (0, 0, passed)


@pytest.mark.parametrize("passed", PASSED)
def test_deliveries_in_a_deleted_queue_are_not_counted_in_the_next_queue(broker, again, passed):
    """The next queue has an item with the same content."""
    broker.open()
    broker.put(b"same")
    broker.take(A)
    broker.requeue(A)
    again(passed)
    broker.put(b"same")
    broker.calls += 1
    (delivery,) = broker.run(broker.operations.take_many(A, broker.calls, 2, 1, False, None))
    broker.requeue(A)
    assert broker.run(broker.operations.rejected(9)) == []
    assert broker.drain() == [delivery.item]


def test_an_acknowledgement_of_another_queues_item_does_nothing(broker, again):
    broker.open()
    broker.put(b"old")
    (delivery,) = broker.take(A)
    again(1)
    assert broker.run(broker.operations.acknowledge(A, delivery.seq)) is Outcome.LATE
    assert not broker.handed(f"{A}#1", 1)
    assert broker.put_back(f"{A}#1") == 0
    assert broker.run(broker.operations.stats()).unfinished == 1


@pytest.mark.parametrize("passed", PASSED)
def test_producers_of_another_queue_do_not_end_this_one(broker, again, passed):
    broker.open()
    broker.run(broker.operations.renew(A, False, True))
    broker.run(broker.operations.retire(A))
    with pytest.raises(ShutDown):
        broker.run(broker.operations.get(False, None, eof=True))
    again(passed)
    for get in (
        broker.operations.get(False, None, eof=True),
        broker.operations.get_many(1, False, None, eof=True),
        broker.operations.take_many(A, 90, 0, 1, False, None, eof=True),
    ):
        with pytest.raises(Empty):
            broker.run(get)
    assert broker.prefetch(f"{A}#1", eof=True) == NoItem()
    assert broker.run(broker.operations.renew(B, True, False)).producers == {}


def test_a_large_item_is_stored_for_the_queue_that_it_is_put_to(server, name, again, kept):
    q = Queue(name=name, url=server.url)
    q.put(b"x" * 600_000)
    assert large_contents.count_chunks(q) > 1
    again()
    assert q.stats().length == 0
    assert large_contents.count_chunks(q) == 0
    q.put(b"y" * 600_000)
    assert q.get() == b"y" * 600_000
    q.put(b"z" * 600_000)
    assert q.stats().length == 1
    assert q.get() == b"z" * 600_000


def test_a_large_item_is_stored_again_when_its_queue_became_another(server, name, theirs):
    """Theirs deletes and creates between two of its parts."""
    q = Queue(name=name, url=server.url)
    other = theirs()

    def renew(number):
        if number == 1 and not renewed:
            renewed.append(True)
            other.delete()
            other.create()

    renewed: list[bool] = []
    with large_contents.before_each_chunk(renew):
        q.put(b"x" * 600_000)
    assert renewed
    q.stats()
    assert q.get(timeout=LIMIT) == b"x" * 600_000


def test_an_anonymous_queue_that_theirs_made_its_own_is_not_removed(server, broker, again, client):
    """Its users ended; the queue that has its name now is not the one that they used."""
    broker.run(broker.operations.open(How.OPEN, 0, A))
    again()
    with pytest.raises(QueueDoesNotExistError):
        broker.run(broker.operations.dismiss([A]))
    broker.run(broker.operations.stats())
    with pytest.raises(QueueDoesNotExistError):
        broker.run(broker.operations.dismiss([A]))
    assert broker.run(broker.operations.exists())


def test_all_that_was_kept_goes_at_the_first_look(broker, again, kept, client):
    """Whatever it is, and whatever its type."""
    broker.open()
    again(2)
    for part in KEPT:
        client.set(broker.binding.key(part), "of a former queue")
    broker.run(broker.operations.stats())
    assert kept() == set()


@pytest.mark.parametrize(
    "look",
    [
        *("stats", "join", "task_done", "rejected", "reject", "open", "take", "prefetch"),
        *("acknowledge", "handed", "end_prefetch", "requeue", "renew", "retire", "close"),
        *("get", "get_many", "store"),
    ],
)
def test_every_operation_that_uses_kept_data_checks_that_they_are_of_this_queue(
    broker, again, kept, client, look
):
    broker.open()
    again(1)
    client.hset(broker.binding.key("meta"), "former", "1")
    operations = broker.operations
    operation = {
        "stats": operations.stats,
        "join": lambda: operations.join(0.0),
        "task_done": operations.task_done,
        "rejected": lambda: operations.rejected(1),
        "reject": lambda: operations.reject(b"x"),
        "open": lambda: operations.open(How.ATTACH, 0),
        "take": lambda: operations.take_many(A, 1, 0, 1, False, None),
        "prefetch": lambda: operations.prefetch(Prefetch(f"{A}#1", 1, 0, 0, 1)),
        "acknowledge": lambda: operations.acknowledge(A, 1),
        "handed": lambda: operations.prefetch(Prefetch(f"{A}#1", 1, 1, 0, 0)),
        "end_prefetch": lambda: ended(EndPrefetch(f"{A}#1", 1, 0)),
        "requeue": lambda: operations.requeue(A),
        "renew": lambda: operations.renew(A, True, True),
        "retire": lambda: operations.retire(A),
        "close": lambda: operations.close(True, None, once=False, immediate=True),
        "get": lambda: operations.get(False, None, eof=True),
        "get_many": lambda: operations.get_many(1, False, None, eof=True),
        "store": lambda: operations.put(large_contents.sample(), False, None),
    }[look]
    try:
        broker.run(operation())
    except Empty:
        pass
    assert not client.hexists(broker.binding.key("meta"), "former")


@pytest.mark.parametrize("step", range(20))
def test_ours_may_look_between_any_two_steps_of_a_delete_and_a_create(
    ours, theirs, broker, kept, step
):
    """Nothing of the former queue is in the new one, whenever ours looked."""
    broker.open()
    broker.fill(3)
    broker.take(A)
    broker.run(broker.operations.reject(broker.take(B)[0].item))
    stop = Stop(step)
    other = theirs(before=stop)

    def renew():
        other.delete()
        other.create()

    renewing = Background(renew)
    until(lambda: stop.reached.is_set() or not renewing.is_alive())
    for look in (
        broker.operations.stats,
        lambda: broker.operations.renew(A, True, True),
        lambda: broker.operations.requeue(B),
    ):
        with contextlib.suppress(QueueDoesNotExistError):
            broker.run(look())
    stop.go_on()
    renewing.result()
    stats = broker.run(broker.operations.stats())
    assert (stats.in_flight, stats.rejected, stats.unfinished) == (0, 0, 0)
    assert broker.requeue(A)
    assert broker.length() == 0


def test_clients_that_wait_for_a_role_keep_their_place_in_another_queue(
    ours, theirs, broker, parked, tokens, kept
):
    """Waiting clients are no part of the kept data: the tokens, which all know, tell of them."""
    other = theirs()
    other.create()
    getting = Background(ours.get)
    parked()
    assert broker.run(broker.operations.stats()).in_flight == 0
    other.put(b"x")
    assert getting.result() == b"x"
    assert tokens() == (1, 1)


def test_an_ordinary_put_and_get_look_at_nothing_that_is_kept(ours, theirs, client, name):
    """What tells the queues apart is written when there is something to keep, and not before."""
    theirs().create()
    ours.put(b"x")
    ours.put_nowait(b"y")
    assert [ours.get(), ours.get_nowait()] == [b"x", b"y"]
    assert client.pttl(f"__pressure__:{name}:stats:consumed_bytes") == -1


def test_theirs_counts_on_and_the_kept_data_stay(broker, theirs):
    """All that theirs does to a queue but to delete it."""
    other = theirs()
    other.create(3)
    broker.fill(2)
    broker.take(A)
    broker.run(broker.operations.reject(broker.take(B)[0].item))
    for _ in range(3):
        other.put(b"theirs")
        other.get()
        other.put_nowait(b"theirs")
        other.get_nowait()
    other.overfill(b"theirs")
    other.close()
    stats = broker.run(broker.operations.stats())
    assert (stats.in_flight, stats.rejected, stats.consumed_bytes) == (2, 1, 2 * 3 + 6 * 6)
    broker.requeue(A)
    assert broker.drain() == [b"000", b"theirs"]


@contextlib.contextmanager
def consumer_of(q):
    """A process that got an item and does not acknowledge it; it is killed at the end."""
    spawn = multiprocessing.get_context("spawn")
    got = spawn.Event()
    consumer = spawn.Process(target=large_contents.get_and_wait, args=(q, got))
    consumer.start()
    try:
        assert got.wait(30)
        yield
    finally:
        consumer.kill()
        consumer.join()


@pytest.mark.parametrize("kind", engines.kinds(Can.PROTOCOL))
def test_an_item_in_flight_outlives_a_restart_of_the_server(kind, name):
    """What tells the queues apart is on the disk with them."""
    server = Server(kind, Server.durable)
    try:
        server.start()
        q = JoinableQueue(name=name, url=server.url)
        q.put("kept")
        with consumer_of(q), server.client() as client:
            client.bgrewriteaof()
            until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
            server.kill()
            server.start()
            assert q.stats().in_flight == 1
        assert q.get(timeout=30) == "kept"
    finally:
        server.stop()


def test_a_killed_consumers_item_goes_to_the_queue_that_it_was_got_from(server, name, theirs):
    """And to no later one, though a live process looks after the dead one's items all the while."""
    q = JoinableQueue(name=name, url=server.url)
    q.put("of the former queue")
    other = theirs()
    with consumer_of(q):
        other.delete()
        other.create()
        getting = Background(q.get)
    q.put("new")
    assert getting.result() == "new"
    q.task_done()
    assert (q.stats().in_flight, q.stats().length) == (0, 0)
    q.delete()
