"""What a process that waits at many queues asks of the server, and what it is told in time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from contextlib import closing

import inside
import pytest
from programs import deliveries as programs
from waiting import HOURS, Background, until

from pressure_mp import JoinableQueue, Queue, QueueDoesNotExistError, ShutDown, aio
from pressure_mp.background import lease_thread
from pressure_mp.engines.contract.session import TICK
from pressure_mp.engines.redis import role_checks, turns
from pressure_mp.sync import readable

#: How many queues, and looks during which the server counts.
MANY, LOOKS = 20, 8


def calls(client):
    """How many scripts and blocking commands the server was sent."""
    told = client.info("commandstats")
    return sum(told.get(f"cmdstat_{one}", {"calls": 0})["calls"] for one in ("evalsha", "blmove"))


@pytest.fixture
def looks(monkeypatch):
    """A list that grows by one with each look of the process."""
    seen, look = [], lease_thread._look_at

    def counted(needed):
        look(needed)
        seen.append(needed)

    monkeypatch.setattr(lease_thread, "_look_at", counted)
    return seen


@pytest.fixture
def rare(monkeypatch):
    """A call that waits is made again only if a look of its process says so."""
    monkeypatch.setattr(turns, "LONGEST_WAIT", HOURS)


def is_looked_after(queue):
    """Whether the calls that wait at a queue leave it to the looks to see that they still wait."""
    binding = inside.binding(queue)
    found = binding.role_checks.present() if binding is not None else []
    return bool(found) and all(one.is_renewed for one in found)


def test_threads_that_wait_at_many_queues_make_a_call_or_two_for_a_look(own_server, name, looks):
    queues = [Queue(name=f"{name}-{one}", url=own_server.url) for one in range(MANY)]
    getting = [Background(queue.get) for queue in queues]
    until(lambda: all(map(is_looked_after, queues)))
    with own_server.client() as client:
        # The wait before the first look is over after a tick.
        until(lambda: len(looks) > 2 * TICK / lease_thread.LOOK)
        before, begun = calls(client), len(looks)
        until(lambda: len(looks) >= begun + LOOKS)
        made, looked = calls(client) - before, len(looks) - begun
    for number, queue in enumerate(queues):
        queue.put(number)
    assert [one.result() for one in getting] == [*range(MANY)]
    assert made <= 2 * looked + 2 * MANY  # one call for each queue would be MANY for each look


def test_tasks_that_wait_at_many_queues_make_a_call_or_two_for_a_look(own_server, name, looks):
    async def wait():
        queues = [aio.Queue(name=f"{name}-{one}", url=own_server.url) for one in range(MANY)]
        getting = [asyncio.create_task(queue.get()) for queue in queues]
        while not all(is_looked_after(queue._sync) for queue in queues):
            await asyncio.sleep(0.01)
        begun = len(looks)
        while len(looks) < begun + 2 * TICK / lease_thread.LOOK:
            await asyncio.sleep(0.01)
        before, begun = calls(client), len(looks)
        while len(looks) < begun + LOOKS:
            await asyncio.sleep(0.01)
        made, looked = calls(client) - before, len(looks) - begun
        for number, queue in enumerate(queues):
            await queue.put(number)
        assert await asyncio.gather(*getting) == [*range(MANY)]
        return made, looked

    with own_server.client() as client:
        made, looked = asyncio.run(wait())
    assert made <= 2 * looked + 2 * MANY  # one call for each queue would be MANY for each look


def test_a_thread_keeps_its_role_for_longer_than_a_lease_without_a_call(own_server, name, rare):
    q = Queue(name=name, url=own_server.url, lease=1.5)
    getting = Background(q.get)
    until(lambda: is_looked_after(q))
    holder = inside.binding(q).key("consumer_holder")
    with own_server.client() as client:
        ticket, since = client.hmget(holder, "ticket", "since")
        begun = int(client.hget(holder, "until"))
        until(lambda: int(client.hget(holder, "until")) > begun + 4500)
        assert client.hmget(holder, "ticket", "since") == [ticket, since]
    q.put(1)
    assert getting.result() == 1


def test_threads_in_line_keep_their_places_without_a_call(own_server, name, rare):
    q = Queue(name=name, url=own_server.url)
    q.open()
    first = Background(q.get)
    with own_server.client() as client:
        until(lambda: client.exists(inside.binding(q).key("consumer_holder")))
        others = [Background(q.get) for _ in range(3)]
        until(lambda: len(inside.binding(q).role_checks.present()) == 4 and is_looked_after(q))
        seen = client.hgetall(inside.binding(q).key("waiting"))
        assert len(seen) == 3
        # A fourth of the time for which an entry is kept is over.
        until(lambda: client.hgetall(inside.binding(q).key("waiting")) != seen)
        assert {*client.hgetall(inside.binding(q).key("waiting"))} == {*seen}
    for number in range(4):
        q.put(number)
    assert sorted(one.result() for one in (first, *others)) == [0, 1, 2, 3]


@pytest.fixture
def no_more_looks(rare, looks, monkeypatch):
    """A function that ends the looks at the waiting calls; these trust the last look."""
    monkeypatch.setattr(role_checks, "TICK", HOURS)
    with contextlib.ExitStack() as stack:

        def stop():
            # The wait before the first look is over after a tick.
            until(lambda: len(looks) > 2 * TICK / lease_thread.LOOK)
            stack.enter_context(lease_thread.looking)

        yield stop


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_shutdown_ends_a_waiting_get_without_a_look(own_server, name, no_more_looks, kind):
    q = kind(name=name, url=own_server.url, lease=HOURS)
    getting = Background(q.get)
    until(lambda: is_looked_after(q))
    no_more_looks()
    q.shutdown()
    with pytest.raises(ShutDown):
        getting.result()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_the_end_of_a_producer_ends_a_waiting_get_without_a_look(
    own_server, name, start, no_more_looks
):
    q = Queue(name=name, url=own_server.url, eof="producers", lease=HOURS)
    _, producer = start(programs.produce, q, [1], "close")
    assert q.get() == 1
    getting = Background(q.get)
    until(lambda: is_looked_after(q))
    no_more_looks()
    producer.send("end")
    with pytest.raises(ShutDown):
        getting.result()


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_the_end_of_all_producers_is_seen_by_a_look(own_server, name, rare, kind):
    q = kind.create(name, url=own_server.url, eof="producers")
    with own_server.client() as client:
        producers = f"__pressure__:{name}:mp:producers"
        assert inside.bind(q) is not None
        client.hset(producers, mapping={"ever": 0, "another-host/1/1/aaaaaaaa": 1 << 60})
        getting = Background(q.get)
        until(lambda: is_looked_after(q))
        client.hdel(producers, "another-host/1/1/aaaaaaaa")  # and no client is woken
        with pytest.raises(ShutDown):
            getting.result()


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_close_by_another_implementation_is_seen_by_a_look(own_server, name, rare, kind):
    q = kind(name=name, url=own_server.url)
    getting = Background(q.get)
    until(lambda: is_looked_after(q))
    with own_server.client() as client:
        client.lpush(inside.binding(q).key("closed"), "0", "0")
    with pytest.raises(ShutDown):
        getting.result()


def test_a_delete_by_another_implementation_is_seen_by_a_look(own_server, name, rare):
    queues = [Queue(name=f"{name}-{one}", url=own_server.url) for one in range(2)]
    getting = [Background(queue.get) for queue in queues]
    until(lambda: all(map(is_looked_after, queues)))
    with own_server.client() as client:
        client.flushall()  # only this test uses it
    for one in getting:
        with pytest.raises(QueueDoesNotExistError):
            one.result()


def test_one_queue_that_cannot_be_renewed_keeps_no_other_from_its_renewal(own_server, name, rare):
    queues = [Queue(name=f"{name}-{one}", url=own_server.url, lease=1.5) for one in range(3)]
    getting = [Background(queue.get) for queue in queues[1:]]
    broken = JoinableQueue(name=f"{name}-broken", url=own_server.url)
    broken.put(0)
    broken.get()
    with own_server.client() as client:
        client.set(inside.binding(broken).key("waiting"), "no hash")
        until(lambda: all(map(is_looked_after, queues[1:])))
        holder = inside.binding(queues[1]).key("consumer_holder")
        begun = int(client.hget(holder, "until"))
        until(lambda: int(client.hget(holder, "until")) > begun + 3000)
        client.delete(inside.binding(broken).key("waiting"))
    for queue in queues[1:]:
        queue.put(1)
    assert [one.result() for one in getting] == [1, 1]
    broken.task_done()


def test_one_call_of_a_look_is_for_all_descriptors(own_server, name, monkeypatch):
    seen, look = [], readable._look_at_each

    def counted(queues):
        look(queues)
        if len(queues) >= MANY:
            seen.append(None)

    gc.collect()  # the descriptors of earlier tests
    monkeypatch.setattr(readable, "_look_at_each", counted)
    queues = [Queue(name=f"{name}-{one}", url=own_server.url) for one in range(MANY)]
    with own_server.client() as client:
        for queue in queues:
            queue.fileno()
        until(lambda: len(seen) > 2)
        before, begun = calls(client), len(seen)
        until(lambda: len(seen) >= begun + 20)
        made, looked = calls(client) - before, len(seen) - begun
    assert made <= looked + MANY
    for queue in queues:
        with closing(queue):  # its descriptor is closed too
            queue.put(1)
            assert queue._reader.poll(None)
