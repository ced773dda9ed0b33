"""Connections that break: a call that was under way is done once, and waiting calls go on."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import time

import inside
import pytest
from brokers.servers import Server
from waiting import HOURS, LIMIT, Background, blocked, lasting, until

from pressure_mp import (
    BrokerError,
    BrokerUnavailable,
    JoinableQueue,
    PressureQueue,
    Queue,
    QueueClosedError,
    QueueDoesNotExistError,
    TaskDoneError,
    WrongKeyTypeError,
)
from pressure_mp.drivers import adrive
from pressure_mp.engines import registry, retries
from pressure_mp.engines.blocking_coroutines import finish
from pressure_mp.engines.contract.items import Take
from pressure_mp.engines.contract.replies import NoItem


@pytest.fixture
def lossy(proxy, name):
    """A handle to a new queue, through the proxy."""
    return JoinableQueue.create(name, url=proxy.url)


@pytest.fixture
def own_server():
    """A server of the test's own, which keeps what it is told."""
    server = Server("valkey", Server.durable)
    yield server.start()
    server.stop()


@pytest.mark.parametrize("losses", [1, 2])
def test_a_connection_that_breaks_when_the_time_is_up_is_made_again(
    proxy, lossy, losses, monkeypatch
):
    monkeypatch.setattr(retries, "SHORTEST_TRY", LIMIT)

    def last_call():
        inside.engine(lossy).close()
        proxy.lose(losses)  # instead of the reply to a greeting
        return Take(waits=False), time.monotonic()

    async def main():
        session = inside.bind(lossy).asession()
        reply = await session.call(*last_call())
        await session.end()
        return reply

    session = inside.bind(lossy).session()
    assert session.call(*last_call()) == NoItem()
    session.end()
    assert asyncio.run(main()) == NoItem()
    assert proxy.lost == 2 * losses


@pytest.mark.parametrize("losses", [1, 3])
def test_a_put_whose_reply_is_lost_is_done_once(proxy, lossy, losses):
    proxy.lose(losses)
    lossy.put("a")
    assert proxy.lost == losses
    assert (lossy.qsize(), lossy.stats().produced_messages) == (1, 1)
    lossy.put("b")
    assert [lossy.get(), lossy.get()] == ["a", "b"]


@pytest.mark.parametrize("losses", [1, 3])
def test_a_get_whose_reply_is_lost_gives_the_item_that_it_took(proxy, lossy, losses):
    items = ["a", b"\x00\xff" * 70000, "c"]
    for item in items:
        lossy.put(item)
    got = []
    for _ in items:
        proxy.lose(losses)
        got.append(lossy.get())
    assert got == items
    assert (lossy.qsize(), lossy.stats().consumed_messages) == (0, 3)


def test_a_task_done_whose_reply_is_lost_counts_one(proxy, lossy):
    lossy.put(1)
    lossy.put(2)
    lossy.get()
    proxy.lose()
    lossy.task_done()
    assert lossy.unfinished_tasks == 1
    lossy.get()
    lossy.task_done()
    with pytest.raises(TaskDoneError):
        lossy.task_done()


def test_a_queue_is_made_closed_and_deleted_once(proxy, server, name):
    q = PressureQueue(name, url=proxy.url)
    assert not q.exists()
    proxy.lose()
    q.create(3)
    proxy.lose()
    q.close()
    with pytest.raises(QueueClosedError):
        q.close()
    proxy.lose()
    q.delete()
    with pytest.raises(QueueDoesNotExistError):
        q.length()
    assert proxy.lost == 3


def test_a_call_that_comes_late_over_a_lost_connection_does_nothing(server, name):
    q = Queue(name=name, url=server.url, prefix=name, serializer="raw")
    q.put(b"first")
    binding = inside.binding(q)
    (wire,) = binding.engine.thread_pool._all
    last = wire.lane.number

    def send(number):
        args = (b"again", "somebody")
        packed = binding.commands["put_at_once"].pack(args, wire.id, wire.lane, b"%d" % number)
        return finish(wire.exchange(packed, None))

    assert send(last) == [b"again", [b"done"]], "the reply that was kept"
    assert send(last - 1) == [b"stale"]
    assert q.qsize() == 1
    assert send(last + 1) == 1
    assert q.qsize() == 2


def test_a_full_server_gives_an_item_once(own_server, name):
    """It refuses to count the call before the item is out."""
    q = Queue(name=name, url=own_server.url, serializer="raw")
    q.put(b"first")
    q.put(b"second")
    binding = inside.binding(q)
    (wire,) = binding.engine.thread_pool._all
    with own_server.client() as client:
        client.script_load(binding.scripts["get_at_once"].source)
        client.config_set("maxmemory", 1)
        number = binding.commands["get_at_once"].number(wire.lane)
        packed = binding.commands["get_at_once"].pack(("somebody",), wire.id, wire.lane, number)
        assert finish(wire.exchange(packed, None)) == b"first"
        assert finish(wire.exchange(packed, None)) == [b"again", [b"done", b"first"]]
    assert q.get_nowait() == b"second"


@pytest.mark.parametrize(
    ("has_sign", "reply", "again"),
    [(True, [b"empty", b"item"], [b"empty", b"item"]), (False, None, [b"declined"])],
    ids=["empty", "declined"],
)
def test_a_repeated_call_that_was_refused_is_refused_again(server, name, has_sign, reply, again):
    q = Queue(name=name, url=server.url, prefix=name, serializer="raw")
    q.qsize()
    binding = inside.binding(q)
    (wire,) = binding.engine.thread_pool._all
    number = binding.commands["get_at_once"].number(wire.lane)

    def send():
        packed = binding.commands["get_at_once"].pack(("somebody",), wire.id, wire.lane, number)
        return finish(wire.exchange(packed, None))

    with server.client() as client:
        client.script_load(binding.scripts["get_at_once"].source)
        if not has_sign:
            client.delete(binding.key("not_full"))
        assert send() == reply
        client.lpush(binding.key("data"), b"there now")
    assert send() == [b"again", again]


def test_a_reply_kept_for_a_repeated_call_goes_by_itself_and_with_the_queue(server, name):
    q = Queue(name=name, url=server.url, reconnect=7)
    q.put(1)
    with server.client() as client:
        (kept,) = client.scan_iter(match=f"*{name}:mp:kept:*")
        assert 22000 < client.pttl(kept) <= 44000
        assert kept not in lasting(client, f"*{name}*")
        q.delete()
        assert list(client.scan_iter(match=f"*{name}*")) == []


def test_no_reply_is_kept_for_a_handle_that_does_not_connect_again(server, name):
    q = Queue(name=name, url=server.url, reconnect=0)
    q.put(1)
    with server.client() as client:
        assert list(client.scan_iter(match=f"*{name}:mp:kept:*")) == []


@pytest.mark.parametrize("wrong", ["zzz", str(2**63 - 1), str(2**40), "1e400"])
def test_a_kept_reply_that_others_wrote_over_is_a_clear_error(server, name, wrong):
    # With a prefix of its own it has its connections, and so its lane, to itself.
    q = Queue(name=name, url=server.url, prefix=name)
    q.put(1)
    with server.client() as client:
        (kept,) = client.scan_iter(match=f"*{name}:mp:kept:*")
        client.hset(kept, "number", wrong)
        with pytest.raises(BrokerError, match=kept.decode()):
            q.put(2)
        assert q.qsize() == 1
        client.delete(kept)
        q.put(2)
        client.delete(kept)
        client.set(kept, "x")
        with pytest.raises(WrongKeyTypeError, match=kept.decode()):
            q.put(3)
        assert q.qsize() == 2


def waits(q, other):
    """Operations that wait, by what for; and what lets them go on."""

    def item():
        return q.get, lambda: other.put(b"x")

    def space():
        other.put(b"full")
        return lambda: q.put(b"x"), other.get

    return {"item": item, "space": space}


@pytest.mark.parametrize("reason", ["item", "space"])
@pytest.mark.parametrize("crowd", [1, 4])
def test_waiting_calls_go_on_when_their_connections_are_cut(server, proxy, name, reason, crowd):
    # The first waits with the role, the others in line for it.
    q = Queue(1, name, url=proxy.url, serializer="raw")
    other = Queue(1, name, url=server.url, serializer="raw")
    wait, serve = waits(q, other)[reason]()
    with server.client() as client:
        before = blocked(client)
        waiting = [Background(wait) for _ in range(crowd)]
        until(lambda: blocked(client) == before + crowd)
        for _ in range(3):
            proxy.cut()
            until(lambda: blocked(client) == before + crowd)
    for _ in waiting:
        serve()
    for each in waiting:
        each.result()


@pytest.mark.parametrize("reason", ["item", "space"])
def test_tasks_that_wait_go_on_when_their_connections_are_cut(server, proxy, name, reason):
    q = Queue(1, name, url=proxy.url, serializer="raw")
    q.open()
    other = Queue(1, name, url=server.url, serializer="raw")
    other.open()
    _, serve = waits(q, other)[reason]()
    operations = inside.operations(q)

    def operation():
        return operations.get(True, None) if reason == "item" else operations.put(b"x", True, None)

    async def cut_them():
        bound, engine = inside.bind(q), inside.engine(q)
        tasks = [asyncio.create_task(adrive(operation(), bound.asession())) for _ in range(3)]
        with server.client() as client:

            async def parked():
                while blocked(client) < 1 or inside.in_lines(engine) < 2:
                    await asyncio.sleep(0.002)

            await parked()
            for _ in range(3):
                proxy.cut()
                await parked()
        for _ in tasks:
            await asyncio.to_thread(serve)
        await asyncio.wait_for(asyncio.gather(*tasks), 10)

    asyncio.run(cut_them())


def test_a_call_in_a_task_whose_reply_is_lost_is_done_once(server, proxy, name):
    q = Queue(name=name, url=proxy.url, serializer="raw")
    q.open()
    operations = inside.operations(q)
    bound = inside.bind(q)

    async def put_and_get():
        await adrive(operations.put(b"first", True, None), bound.asession())
        for number in range(5):
            proxy.lose()
            await adrive(operations.put(b"%d" % number, True, None), bound.asession())
        got = []
        for _ in range(6):
            proxy.lose()
            got.append(await adrive(operations.get(True, 5), bound.asession()))
        return got

    assert asyncio.run(put_and_get()) == [b"first", b"0", b"1", b"2", b"3", b"4"]
    assert proxy.lost == 11


def test_waiting_calls_go_on_when_the_server_was_killed_and_comes_back(own_server, name):
    empty = Queue(1, name + "-empty", url=own_server.url)
    full = Queue(1, name + "-full", url=own_server.url)
    full.put("old")
    gets = [Background(empty.get) for _ in range(3)]
    puts = [Background(full.put, item) for item in ("new", "newer")]
    client = own_server.client()
    until(lambda: blocked(client) == 5)
    client.close()
    own_server.kill()
    time.sleep(0.5)  # long enough for each of them to find that no server answers
    assert all(each.is_alive() for each in (*gets, *puts))
    own_server.start()
    for item in "abc":
        empty.put(item)
    assert sorted(get.result() for get in gets) == ["a", "b", "c"]
    assert full.get() == "old"
    assert sorted([full.get(), full.get()]) == ["new", "newer"]
    for put in puts:
        put.result()


def test_the_time_to_connect_again_has_a_limit(own_server, name):
    q = Queue(name=name, url=own_server.url, reconnect=1)
    own_server.kill()
    begin = time.monotonic()
    with pytest.raises(BrokerUnavailable, match="no broker answers at redis://"):
        q.put(1)
    assert time.monotonic() - begin > 0.9


def test_a_program_that_seeds_random_has_the_same_numbers_when_a_connection_breaks(
    own_server, name
):
    q = Queue(name=name, url=own_server.url, reconnect=0.1)
    q.put(1)
    own_server.kill()
    random.seed(1)
    before = random.getstate()
    with pytest.raises(BrokerUnavailable):
        q.get()
    assert random.getstate() == before
    q.close()


def test_without_time_to_connect_again_the_first_failure_is_raised(own_server, name, monkeypatch):
    q = Queue(name=name, url=own_server.url, reconnect=0)
    own_server.kill()

    async def sleep(seconds):
        raise AssertionError(f"it tries again in {seconds} s")

    monkeypatch.setattr(registry.engine(q._at.address).thread_pool, "sleep", sleep)
    with pytest.raises(BrokerUnavailable):
        q.put(1)


@pytest.mark.parametrize("way", ["killed", "stopped"])
@pytest.mark.parametrize("side", ["get", "put"])
def test_the_callers_time_holds_while_the_server_is_away(own_server, name, way, side):
    q = Queue(1, name, url=own_server.url, reconnect=HOURS)
    if side == "put":
        q.put("full")
    call = {"get": lambda: q.get(timeout=1), "put": lambda: q.put("x", timeout=1)}[side]
    client = own_server.client()
    before = blocked(client)
    waiting = Background(call)
    until(lambda: blocked(client) == before + 1)
    if way == "killed":
        own_server.kill()
    else:
        own_server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(BrokerUnavailable):
            waiting.result()  # of its own accord: to connect again it has hours
    finally:
        if way == "stopped":
            own_server.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_gets_that_follow_each_other_take_no_longer_while_the_server_is_away(
    own_server, name, kind
):
    """What the one before may have taken is not waited for."""
    queue, timeout, number = kind(name=name, url=own_server.url, reconnect=1), 0.5, 6
    queue.put(1)
    queue.get()
    own_server.kill()
    with pytest.raises(BrokerUnavailable):
        queue.get_many(2)
    begun = time.monotonic()
    for _ in range(number):
        with pytest.raises(BrokerUnavailable):
            queue.get_many(2, timeout=timeout)
    assert time.monotonic() - begun < number * (timeout + 0.5)


def test_a_server_that_accepts_and_says_nothing_is_not_waited_for_without_end(name):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = f"redis://127.0.0.1:{port}?socket_connect_timeout=0.5"
        with pytest.raises(BrokerUnavailable):
            Queue(name=name, url=url, reconnect=0).open()


@pytest.mark.parametrize("reconnect", ["10", True, None])
def test_a_time_to_connect_again_is_a_number(name, valkey, reconnect):
    with pytest.raises(TypeError):
        Queue(name=name, url=valkey.url, reconnect=reconnect)


@pytest.mark.parametrize("reconnect", [-1, float("inf"), float("nan")])
def test_a_time_to_connect_again_is_not_negative_or_endless(name, valkey, reconnect):
    with pytest.raises(ValueError):
        Queue(name=name, url=valkey.url, reconnect=reconnect)
