"""What was sent is settled, however short the time is that a caller gives."""

from __future__ import annotations

import asyncio
import time

import inside
import pytest
from brokers.servers import Server
from waiting import HOURS, Background, blocked, until

from pressure_mp import (
    BrokerUnavailable,
    Empty,
    Full,
    JoinableQueue,
    Queue,
    QueueDoesNotExistError,
    ShutDown,
    TaskQueue,
)
from pressure_mp.drivers import adrive
from pressure_mp.engines.redis import pool

#: The time that a caller gives, and the seconds by which each reply comes later.
SHORT = [(0, 0.0), (0.01, 0.04), (0.05, 0.0)]
#: How often the reply is lost, one time after the other.
LOSSES = [1, 3]

short = pytest.mark.parametrize(("timeout", "delay"), SHORT, ids=["now", "slow-link", "short"])
losses = pytest.mark.parametrize("losses", LOSSES)


@short
@losses
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Queue, {}),
        (Queue, {"buffering": 4, "prefetch": 4}),
        (JoinableQueue, {}),
        (JoinableQueue, {"buffering": 4, "prefetch": 4}),
    ],
    ids=["plain", "buffered", "joinable", "joinable-buffered"],
)
@pytest.mark.parametrize("side", ["get", "get_many"])
def test_a_get_returns_the_item_it_took_although_its_time_is_up(
    server, proxy, name, kind, options, side, timeout, delay, losses
):
    with Queue(name=name, url=server.url) as producer:
        producer.put_many("abcd")
    q = kind(name=name, url=proxy.url, **options)
    proxy.delay = delay
    got = []
    while len(got) < 4:
        proxy.lose(losses)
        got += q.get(timeout=timeout) if side == "get" else q.get_many(1, timeout=timeout)
    assert got == list("abcd")
    assert proxy.lost >= losses
    proxy.lose(0)
    assert q.stats().consumed_messages == 4


@short
@losses
@pytest.mark.parametrize("side", ["put", "put_many"])
def test_a_put_is_done_once_although_its_time_is_up(
    server, proxy, name, side, timeout, delay, losses
):
    q = Queue(name=name, url=proxy.url)
    proxy.delay = delay
    for item in "abc":
        proxy.lose(losses)
        if side == "put":
            q.put(item, timeout=timeout)
        else:
            q.put_many([item], timeout=timeout)
    assert proxy.lost == 3 * losses
    with Queue(name=name, url=server.url) as other:
        assert other.get_many(9) == list("abc")
        assert other.stats().produced_messages == 3


@short
@losses
def test_a_full_or_empty_queue_says_so_over_connections_that_break(
    proxy, name, timeout, delay, losses
):
    q = Queue(1, name, url=proxy.url)
    proxy.delay = delay
    proxy.lose(losses)
    with pytest.raises(Empty):
        q.get(timeout=timeout)
    q.put("full")
    proxy.lose(losses)
    with pytest.raises(Full):
        q.put("x", timeout=timeout)
    assert q.get(timeout=timeout) == "full"


@short
@losses
def test_a_task_that_was_taken_comes_although_the_time_is_up(proxy, name, timeout, delay, losses):
    q = TaskQueue(name=name, url=proxy.url)
    proxy.delay = delay
    proxy.lose(losses)
    q.put("a")
    q.put("b")
    for data in "ab":
        proxy.lose(losses)
        task = q.take(timeout=timeout)
        assert task.data == data
        proxy.lose(losses)
        q.ack(task)
    assert proxy.lost == 5 * losses


@short
@losses
def test_a_get_of_asyncio_returns_the_item_it_took_although_its_time_is_up(
    server, proxy, name, timeout, delay, losses
):
    q = Queue(name=name, url=proxy.url, serializer="raw")
    q.open()
    operations = inside.operations(q)
    bound = inside.bind(q)

    async def put_and_get():
        await adrive(operations.stats(), bound.asession())
        for item in (b"a", b"b"):
            proxy.lose(losses)
            await adrive(operations.put(item, True, timeout), bound.asession())
            proxy.lose(losses)
            assert await adrive(operations.get(True, timeout), bound.asession()) == item

    proxy.delay = delay
    asyncio.run(put_and_get())
    assert proxy.lost == 4 * losses


def test_a_broken_connection_to_a_healthy_server_is_no_error(server, proxy, name):
    q = Queue(name=name, url=proxy.url)
    for number in range(5):
        proxy.cut()
        q.put(number, timeout=0)
        proxy.cut()
        assert q.get(timeout=0) == number
        proxy.cut()
        with pytest.raises(Empty):
            q.get(timeout=0)


@pytest.mark.parametrize("timeout", [0, 0.01, 0.3])
def test_a_get_that_was_sent_raises_broker_unavailable_only_after_reconnect_seconds(
    own_server, name, timeout, monkeypatch
):
    # However long the server takes to die, it is the call that finds it dead.
    monkeypatch.setattr(pool, "_IDLE_CHECK", HOURS)
    q = Queue(name=name, url=own_server.url, reconnect=1)
    q.put("x")
    own_server.kill()
    begin = time.monotonic()
    with pytest.raises(BrokerUnavailable):
        q.get(timeout=timeout)
    assert time.monotonic() - begin >= 1


def test_a_call_that_was_never_sent_ends_when_its_time_is_up(own_server, name):
    """It waited; there is nothing whose outcome is not known."""
    q = Queue(name=name, url=own_server.url, reconnect=600)
    waiting = Background(q.get, timeout=1)
    with own_server.client() as client:
        until(lambda: blocked(client))
    own_server.kill()
    with pytest.raises(BrokerUnavailable):
        waiting.result(60)


def test_a_server_that_comes_back_meanwhile_answers(own_server, name):
    q = Queue(name=name, url=own_server.url, reconnect=60)
    q.put("lost with the server, which keeps nothing")
    own_server.kill()
    putting = Background(q.put, "x", timeout=0)
    putting.join(0.2)
    own_server.start()
    with pytest.raises(QueueDoesNotExistError):
        putting.result(60)


@pytest.mark.parametrize("tube", [None, "a"], ids=["in-one-call", "in-two-calls"])
@pytest.mark.parametrize("timeout", [0, 0.05])
def test_a_take_acknowledges_although_the_server_is_away_for_longer_than_it_waits(
    name, tube, timeout
):
    """Nothing was sent: the only connection is that of another take, which waits."""
    server = Server("valkey", Server.durable).start()
    try:
        queue = TaskQueue.create(name, url=server.url, reconnect=60)
        for data in (1, 2):
            queue.put(data, tube=tube)
        first = queue.take()
        other = Background(queue.take, tube="nothing")
        with server.client() as client:
            until(lambda: blocked(client))
        server.kill()
        taking = Background(queue.take, timeout, tube=tube, ack=first)
        taking.join(0.5)
        assert taking.is_alive()
        server.start()
        second = taking.result(60)
        assert (second.data, first.state) == (2, "X")
        second.ack()
        queue.shutdown()
        with pytest.raises(ShutDown):
            other.result(60)
    finally:
        server.stop()
