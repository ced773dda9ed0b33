"""Keys of a queue that a server, or another program, removed: what can be known is put right."""

from __future__ import annotations

from contextlib import nullcontext

import inside
import pytest
from stepwise import Stop
from waiting import Background, until

from pressure_mp import (
    Empty,
    Full,
    IncompleteQueueError,
    LifoQueue,
    PressureQueue,
    ProducerInUseError,
    Queue,
)
from pressure_mp.engines.contract.items import Prefetch
from pressure_mp.engines.contract.replies import NoItem
from pressure_mp.operations.deliveries import DeliveryOperations

pytestmark = pytest.mark.usefixtures("no_looks")


@pytest.fixture
def sign(client, name):
    """Whether there is the sign of space; and with ``remove`` it goes."""
    key = f"__pressure__:{name}:not_full"

    def sign(remove: bool = False) -> bool:
        return bool(client.delete(key) if remove else client.llen(key))

    return sign


PUTS = {
    "put": lambda q: q.put("x", timeout=5),
    "put_nowait": lambda q: q.put_nowait("x"),
    "put_many": lambda q: q.put_many(["x"], timeout=5),
}


@pytest.mark.parametrize("put", PUTS)
@pytest.mark.parametrize("maxsize", [0, 3])
def test_a_put_where_there_is_space_needs_no_sign_of_it(server, name, sign, maxsize, put):
    q = Queue(maxsize, name, url=server.url)
    q.put("before")
    sign(remove=True)
    PUTS[put](q)
    assert sign()
    assert [q.get_nowait(), q.get_nowait()] == ["before", "x"]


def test_a_full_queue_stays_full(server, name, sign):
    q = Queue(1, name, url=server.url)
    q.put("x")
    assert not sign()
    for put in (q.put_nowait, lambda item: q.put_many([item], block=False)):
        with pytest.raises(Full):
            put("y")


GETS = {
    "get_nowait": lambda q, f: q.get_nowait(),
    "get": lambda q, f: q.get(timeout=0.01),
    "get_many": lambda q, f: q.get_many(2, block=False),
    "take": lambda q, f: inside.run(q, f.take_many("A", 1, 0, 1, False, None)),
    "prefetch": lambda q, f: inside.run(q, f.prefetch(Prefetch("A#1", 1, 0, 0, 1))),
}


@pytest.mark.parametrize("get", GETS)
@pytest.mark.parametrize("maxsize", [0, 3])
def test_a_get_that_finds_nothing_puts_the_sign_of_space_back(server, name, sign, maxsize, get):
    q = Queue(maxsize, name, url=server.url)
    sign(remove=True)
    with nullcontext() if get == "prefetch" else pytest.raises(Empty):
        assert GETS[get](q, DeliveryOperations(name, "fifo")) == NoItem()
    assert sign()


def test_their_blocked_put_goes_on_when_ours_looks(ours, theirs, sign, parked):
    ours.create()
    sign(remove=True)
    other = theirs()
    putting = Background(other.put, b"x")
    parked()
    with pytest.raises(Empty):
        ours.get_nowait()
    putting.result()
    assert ours.get_nowait() == b"x"


def test_the_sign_that_their_producer_took_is_not_set_a_second_time(ours, theirs, sign):
    """It is about to fill the queue."""
    ours.create(1)
    stop = Stop("LPUSH queue")
    putting = Background(theirs(before=stop).put, b"x")
    until(stop.reached.is_set)
    with pytest.raises(Empty):
        ours.get_nowait()
    assert not sign()
    stop.go_on()
    putting.result()
    assert not sign()


@pytest.mark.parametrize("put", ["put_nowait", "put_many"])
def test_the_space_that_their_consumer_makes_is_theirs_to_tell(
    server, name, ours, theirs, sign, put
):
    """It has an item out and sets the sign next: a put before that would fill the queue twice."""
    q = Queue(1, name, url=server.url, serializer="raw")
    q.put(b"x")
    stop = Stop("LPUSH :not_full")
    getting = Background(theirs(before=stop).get)
    until(stop.reached.is_set)
    with pytest.raises(Full):
        q.put_nowait(b"y") if put == "put_nowait" else q.put_many([b"y"], block=False)
    stop.go_on()
    getting.result()
    q.put_nowait(b"y")
    assert not sign()


def test_a_put_that_waits_while_the_sign_is_lost_goes_on(server, name, sign, client, parked):
    """It looks again by itself."""
    q = Queue(1, name, url=server.url)
    q.put("x")
    putting = Background(q.put, "y")
    parked()
    client.rpop(f"__pressure__:{name}")
    putting.result()
    assert q.get_nowait() == "y"


LEASE = 0.3

WAITS = {
    "put": ("producer", lambda q: q.put("x")),
    "put_many": ("producer", lambda q: q.put_many(["x"])),
    "get": ("consumer", lambda q: q.get()),
    "get_many": ("consumer", lambda q: q.get_many(2)),
    "shutdown": ("producer", lambda q: q.shutdown()),
    "delete": ("consumer", lambda q: q.delete()),
}


@pytest.mark.parametrize("wait", WAITS)
def test_a_role_whose_token_is_lost_is_not_waited_for_without_end(
    server, client, name, wait, tokens
):
    role, call = WAITS[wait]
    q = Queue(name=name, url=server.url, lease=LEASE)
    q.put(1)
    assert q.get() == 1
    client.delete(f"__pressure__:{name}:{role}_free")
    with pytest.raises(IncompleteQueueError, match=rf"{name}.*{role}_free.*unlock\('{role}'\)"):
        call(q)
    if wait == "delete":
        return
    side = q.why_blocked().put if role == "producer" else q.why_blocked().get
    assert side.holder.state == "lost"
    assert f"{role}_free" in str(q.why_blocked())
    PressureQueue(name, url=server.url).unlock(role)
    assert tokens() == (1, 1)
    q.put(2)
    assert q.get() == 2
    q.delete()


@pytest.mark.parametrize("wait", WAITS)
def test_a_role_that_no_client_ever_had_is_put_back(server, client, name, wait):
    role, call = WAITS[wait]
    q = Queue(name=name, url=server.url, lease=LEASE)
    if role == "consumer":
        q.put(1)
    else:
        assert q.empty()
    client.delete(f"__pressure__:{name}:{role}_free")
    call(q)
    assert client.llen(f"__pressure__:{name}:{role}_free") == (wait != "delete")


def test_a_queue_of_another_order_says_so_too(server, client, name):
    q = LifoQueue(name=name, url=server.url, lease=LEASE)
    q.put(0)
    client.delete(f"__pressure__:mp:{{{name}}}:producer_free")
    with pytest.raises(IncompleteQueueError, match="delete the queue"):
        q.put(1)


def test_a_client_of_theirs_that_has_the_role_is_waited_for(server, name, theirs, tokens):
    """It may take as long as it likes."""
    q = Queue(name=name, url=server.url, lease=0.1)
    q.put(1)
    other = theirs()
    other.take("producer")
    with pytest.raises(ProducerInUseError):
        q.put(2, timeout=2.5)
    assert q.why_blocked().put.holder.state == "foreign"
    other.give_back("producer")
    q.put(2)
    assert tokens() == (1, 1)
