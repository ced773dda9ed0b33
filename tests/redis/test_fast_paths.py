"""A get that waits alone: its two small calls, and what goes wrong in between."""

from __future__ import annotations

import socket
import time

import inside
import pytest
from exchanges import Exchanges
from waiting import Background, until

from pressure_mp import Empty, Queue, TaskQueue, WrongKeyTypeError
from pressure_mp.engines.blocking_coroutines import finish

TICKET = "here/1/1:1"

#: Of the consumer's role: how many tokens are free, how many on their way, and its holder.
FREE = (1, 0, None)


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


@pytest.fixture
def other(server, name):
    """A handle to a new queue."""
    q = Queue(name=name, url=server.url)
    yield q
    q.delete()


@pytest.fixture
def alone(other, client, name):
    """Makes a handle to the queue with connections of its own, which bear the queue's name. It has
    found the queue empty: so the next get that waits begins with the role."""
    made = []

    def make(url):
        q = Queue(name=name, url=f"{url}?client_name={name}")
        made.append(q)
        with pytest.raises(Empty):
            q.get_nowait()
        for op in ("get_or_wait", "get"):
            client.script_load(inside.binding(q).scripts[op].source)
        return q

    yield make
    for q in made:
        inside.binding(q).engine.close()


@pytest.fixture
def q(server, alone):
    return alone(server.url)


@pytest.fixture
def exchanges(monkeypatch, q):
    return Exchanges(monkeypatch, q)


def connections(client, q):
    """The numbers of the handle's connections, as the server sees them."""
    return sorted(seen["id"] for seen in client.client_list() if seen["name"] == q.name)


def is_blocked(client, number):
    (seen,) = client.client_list(client_id=[number])
    return "b" in seen["flags"]


def idle(q):
    """The handle's idle connections, by the numbers that the server gave them."""
    nodes = inside.binding(q).engine.thread_pool._route.nodes()
    return sorted(str(wire.id) for node in nodes for wire in node.idle)


def tokens(client, q):
    """Where the role is."""
    keys = [inside.binding(q).key(f"consumer_{part}") for part in ("free", "granted", "holder")]
    return client.llen(keys[0]), client.llen(keys[1]), client.hget(keys[2], "ticket")


# Which calls it makes


@pytest.mark.usefixtures("no_ticks")
def test_a_get_that_waits_alone_makes_two_small_calls(q, other, client, exchanges):
    (number,) = connections(client, q)
    getting = Background(q.get)
    until(lambda: is_blocked(client, number))
    other.put("x")
    assert getting.result() == "x"
    assert exchanges.ops == ["get_or_wait", "get_or_wait"]
    assert tokens(client, q) == FREE
    assert idle(q) == connections(client, q)


def test_a_get_that_was_not_woken_makes_the_full_call(q, other, client, exchanges):
    getting = Background(q.get)
    until(lambda: len(exchanges.ops) == 2)
    other.put("x")
    assert getting.result() == "x"
    assert exchanges.ops[:2] == ["get_or_wait", "get"]
    assert tokens(client, q) == FREE


# Called again under the same number


@pytest.fixture
def send(q):
    """Calls ``stand_by`` under a number, as often as it is told to."""
    binding = inside.binding(q)
    (wire,) = binding.engine.thread_pool._all

    def send(number):
        args = ("somebody", TICKET, 5000, b"")
        packed = binding.commands["get_or_wait"].pack(args, wire.id, wire.lane, number)
        return finish(wire.exchange(packed, None))

    send.number = lambda: binding.commands["get_or_wait"].number(wire.lane)
    return send


def test_a_repeated_call_that_took_the_role_holds_it_once(q, other, client, send):
    number = send.number()
    assert send(number) == [b"empty", b"item"]
    other.put("x")
    for _ in range(2):
        assert send(number) == [b"again", [b"empty", b"item"]]
        assert tokens(client, q) == (0, 0, TICKET.encode())
    assert other.qsize() == 1
    assert q._at.codec.decode(send(send.number())) == "x"
    assert tokens(client, q) == FREE


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "after a wait"])
def test_a_repeated_call_that_took_an_item_answers_the_same_one(q, other, client, send, waits):
    if waits:
        assert send(send.number()) == [b"empty", b"item"]
    other.put("first")
    other.put("second")
    number = send.number()
    item = send(number)
    assert q._at.codec.decode(item) == "first"
    for _ in range(2):
        assert send(number) == [b"again", [b"done", item]]
        assert tokens(client, q) == FREE
    assert other.stats().consumed_messages == 1
    assert other.get_nowait() == "second"


def test_a_repeated_call_that_was_declined_is_declined_again(q, other, client, send):
    free = inside.binding(q).key("consumer_free")
    client.rpop(free)  # as another implementation does
    number = send.number()
    assert send(number) is None
    client.lpush(free, "1")
    other.put("x")
    assert send(number) == [b"again", [b"declined"]]
    assert other.qsize() == 1


# What goes wrong


def test_a_first_call_whose_reply_is_lost_takes_the_role_once(
    proxy, alone, other, client, monkeypatch
):
    q = alone(proxy.url)
    exchanges = Exchanges(monkeypatch, q)
    exchanges.before[1] = lambda *_: proxy.lose()
    getting = Background(q.get)
    until(lambda: tokens(client, q)[2])
    other.put("x")
    assert getting.result() == "x"
    assert proxy.lost == 1
    assert tokens(client, q) == FREE


def test_a_second_call_whose_reply_is_lost_gives_the_item_that_it_took(
    proxy, alone, other, client, monkeypatch
):
    q = alone(proxy.url)
    exchanges = Exchanges(monkeypatch, q)
    exchanges.after[1] = lambda: other.put_many(["first", "second"])
    exchanges.before[2] = lambda *_: proxy.lose()
    assert q.get() == "first"
    assert proxy.lost == 1
    assert other.stats().consumed_messages == 1
    assert tokens(client, q) == FREE
    assert q.get() == "second"


@pytest.mark.parametrize("flushes", [(1,), (2,), (1, 2)])
def test_scripts_that_the_server_forgets_are_sent_again(q, other, client, exchanges, flushes):
    for call in flushes:
        exchanges.before[call] = lambda *_: client.script_flush()
    exchanges.after[1] = lambda: other.put_many(["first", "second"])
    before = idle(q)
    assert q.get() == "first"
    assert other.stats().consumed_messages == 1
    assert tokens(client, q) == FREE
    assert connections(client, q) == idle(q) == before
    assert q.get() == "second"


class Spoilt:
    """A key of a queue that is a hash meanwhile."""

    def __init__(self, client, key):
        self._client, self._key = client, key
        self._aside = key + b":aside"

    def spoil(self, *_):
        if self._client.exists(self._key):
            self._client.rename(self._key, self._aside)
        self._client.hset(self._key, "a", "b")

    def put_right(self):
        self._client.delete(self._key)
        if self._client.exists(self._aside):
            self._client.rename(self._aside, self._key)


@pytest.mark.parametrize("part", ["data", "consumed_messages"])
def test_a_second_call_that_finds_a_key_of_the_wrong_type_gives_the_role_back(
    q, other, client, exchanges, part
):
    key = Spoilt(client, inside.binding(q).key(part))
    before = idle(q)
    exchanges.after[1] = lambda: other.put("x")
    exchanges.before[2] = key.spoil
    with pytest.raises(WrongKeyTypeError, match="is a hash"):
        q.get()
    assert exchanges.ops[:3] == ["get_or_wait", "get_or_wait", "release"]
    assert tokens(client, q) == FREE
    key.put_right()
    assert q.get_nowait() == "x"
    assert other.stats().consumed_messages == 1
    assert connections(client, q) == idle(q) == before


def test_a_first_call_that_finds_a_key_of_the_wrong_type_takes_no_role(q, other, client, exchanges):
    key = Spoilt(client, inside.binding(q).key("consumed_messages"))
    before = idle(q)
    other.put("x")
    exchanges.before[1] = key.spoil
    with pytest.raises(WrongKeyTypeError, match="is a hash"):
        q.get()
    assert exchanges.ops == ["get_or_wait"]
    assert tokens(client, q) == FREE
    key.put_right()
    assert q.get_nowait() == "x"
    assert connections(client, q) == idle(q) == before


def interrupt(wire, packed):
    """Before the call is sent."""
    raise KeyboardInterrupt


def send_and_interrupt(wire, packed):
    """Interrupt the call when its reply is there and was not read."""
    wire._socket.sendall(packed)
    wire._socket.recv(1, socket.MSG_PEEK)
    raise KeyboardInterrupt


@pytest.mark.usefixtures("no_looks")  # each would take a connection
@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("moment", [interrupt, send_and_interrupt])
def test_an_interrupted_small_call_leaves_the_role_free_and_the_connections_in_order(
    q, other, client, exchanges, moment, call
):
    """What was on its way to a consumer that is interrupted goes back."""
    before = len(idle(q))
    exchanges.after[1] = lambda: other.put("first")
    exchanges.before[call] = moment
    with pytest.raises(KeyboardInterrupt):
        q.get()
    assert tokens(client, q) == FREE
    until(lambda: len(connections(client, q)) == before)
    if call == 1:
        other.put("first")
    other.put("last")
    assert q.get() == "first"
    assert q.get() == "last"
    assert q.empty()
    stats = other.stats()
    assert stats.consumed_messages == stats.produced_messages == 2
    with pytest.raises(Empty):
        q.get_nowait()
    assert tokens(client, q) == FREE
    assert connections(client, q) == idle(q)
    assert len(idle(q)) == before


def test_results_whose_time_is_over_go_while_each_task_is_acknowledged_fast(server, name):
    """The fast scripts remove none, so a service that never waits would keep all of them."""
    with TaskQueue(name, url=server.url) as tasks:
        for number in range(800):
            tasks.put(number, result_ttl=0.02)
            tasks.take().ack(result=number)
        time.sleep(0.02)
        assert server.results(name)[0] <= 200
        tasks.delete()
