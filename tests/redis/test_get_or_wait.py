"""``get_or_wait``, the call of a get that may wait: what it takes, and when it is declined."""

from __future__ import annotations

import pytest
from oracle import clients
from waiting import until

from pressure_mp import Full
from pressure_mp.encoding.large import MARK
from pressure_mp.engines.redis.statuses import BUSY, DECLINED, DONE, EMPTY, NOW, WAIT

LEASE = clients.LEASE
MINE, OTHER = "here/1/1:1", "here/2/2:1"

#: Whether it is the first call of a get, or the one after a wait with the role.
before = pytest.mark.parametrize("waits", [False, True], ids=["at once", "after a wait"])


class Broker(clients.Client):
    """Calls in the name of any ticket, each over a connection that is idle again after it."""

    def call(self, op, *args):
        session = self.binding.session()
        try:
            return session.script(op, args)
        finally:
            session.end()

    def stand_by(self, ticket=MINE, lease=LEASE):
        return self.call("get_or_wait", f"client of {ticket}", ticket, lease, "")

    def wait(self, ticket):
        """The call of a get that goes the long way."""
        return self.call("get", 0, f"client of {ticket}", ticket, WAIT, "first", LEASE)

    def holder(self):
        """The consumer's holder: ticket, client, since when, until when, for how long."""
        consumer = self.call("inspect", 1)[7]
        assert consumer[1] == b"held"
        ticket, client, *times = consumer[2:]
        return ticket.decode(), client.decode(), *map(int, times)


@pytest.fixture
def empty(server, name):
    """A broker that does not have the queue yet."""
    return Broker(server.url, name)


@pytest.fixture
def broker(empty):
    empty.open()
    return empty


# What it takes


def test_an_item_is_taken_when_the_role_is_free(broker):
    broker.put(b"first")
    broker.put(b"second")
    assert broker.stand_by() == [DONE, b"first"]
    stats = broker.stats()
    assert (stats.length, stats.consumed_messages, stats.consumed_bytes) == (1, 1, 5)
    assert stats.consumer == f"client of {MINE}"
    assert broker.roles() == []


def test_the_role_is_taken_on_an_empty_queue_and_is_free_after_the_item(broker):
    assert broker.stand_by() == [EMPTY, b"item"]
    ticket, client, since, till, lease = broker.holder()
    assert (ticket, client, lease) == (MINE, f"client of {MINE}", LEASE)
    assert till == since + LEASE
    broker.put(b"x")
    assert broker.stand_by() == [DONE, b"x"]
    assert broker.roles() == []
    assert broker.stand_by(OTHER) == [EMPTY, b"item"]


def test_a_get_that_comes_again_and_finds_nothing_has_the_role_for_longer(broker):
    assert broker.stand_by() == [EMPTY, b"item"]
    _, _, since, first, _ = broker.holder()

    def renewed():
        assert broker.stand_by() == [EMPTY, b"item"]
        return broker.holder()[3] > first

    until(renewed)
    assert broker.holder()[:3] == (MINE, f"client of {MINE}", since)


@before
def test_there_is_space_again_after_the_item(empty, waits):
    empty.open(1)
    if waits:
        assert empty.stand_by() == [EMPTY, b"item"]
    empty.put(b"x")
    assert empty.stand_by() == [DONE, b"x"]
    empty.put(b"y", False)
    with pytest.raises(Full):
        empty.put(b"z", False)


@before
def test_no_space_is_told_of_where_there_is_none(empty, waits):
    """The queue is over its bound, as items that come back make it."""
    empty.open(1)
    if waits:
        assert empty.stand_by() == [EMPTY, b"item"]
    for item in (b"x", b"y"):
        empty.run(empty.operations.put(item, False, None, overfill=True))
    assert empty.stand_by() == [DONE, b"x"]
    assert empty.call("inspect", 1)[5] == 0
    with pytest.raises(Full):
        empty.put(b"z", False)


def test_an_item_of_a_closed_queue_is_still_taken(broker):
    broker.put(b"x")
    broker.run(broker.operations.close(True, None, once=False))
    assert broker.stand_by() == [DONE, b"x"]
    assert broker.stand_by() == [DECLINED]
    assert broker.roles() == []


# When it is declined


def test_the_call_is_declined_while_another_client_waits_with_the_role(broker):
    assert broker.wait(OTHER)[0] == EMPTY
    held = broker.holder()
    assert broker.stand_by() == [DECLINED]
    broker.put(b"x")
    assert broker.stand_by() == [DECLINED]
    assert broker.holder() == held
    assert broker.length() == 1


def test_the_call_is_declined_while_another_client_is_granted_the_role(broker):
    in_line = broker.binding.session()
    assert broker.stand_by("holder") == [EMPTY, b"item"]
    assert in_line.script("get", (0, "somebody", OTHER, WAIT, "first", LEASE))[0] == BUSY
    broker.call("release", "holder", "", LEASE)
    assert in_line.park("consumer", 1)
    assert broker.stand_by() == [DECLINED]
    broker.put(b"x")
    assert broker.stand_by() == [DECLINED]
    assert in_line.script("get", (0, "somebody", OTHER, NOW, "consumer", LEASE)) == [DONE, b"x"]
    in_line.end()
    assert broker.roles() == []


@before
def test_the_call_is_declined_when_the_queue_is_closed_and_empty(broker, waits):
    if waits:
        assert broker.stand_by() == [EMPTY, b"item"]
    broker.run(broker.operations.close(True, None, once=False))
    assert broker.stand_by() == [DECLINED]
    if waits:
        assert broker.holder()[0] == MINE  # the full call gives it back, and says why
        assert broker.call("get", 0, "somebody", MINE, WAIT, "again", LEASE) == [b"closed"]
    assert broker.roles() == []


@before
def test_the_call_is_declined_when_there_is_no_queue(empty, waits):
    if waits:
        empty.open()
        assert empty.stand_by() == [EMPTY, b"item"]
        empty.run(empty.operations.delete(True, None))
    assert empty.stand_by() == [DECLINED]
    assert not empty.run(empty.operations.exists())
    empty.open()
    assert empty.roles() == []


@before
def test_the_call_is_declined_while_another_client_deletes_the_queue(broker, waits):
    """As the reference begins: the bound is gone, and all else is still there."""
    if waits:
        assert broker.stand_by() == [EMPTY, b"item"]
    broker.put(b"x")
    broker.observer.delete(broker.binding.key("bound"))
    assert broker.stand_by() == [DECLINED]
    assert broker.observer.llen(broker.binding.key("data")) == 1


@before
def test_the_call_is_declined_when_the_next_content_is_in_chunks(broker, waits):
    if waits:
        assert broker.stand_by() == [EMPTY, b"item"]
    manifest = MARK + b"x" * 60
    broker.put(manifest)
    broker.put(b"behind it")
    assert broker.stand_by() == [DECLINED]
    assert broker.stats().consumed_messages == 0
    if waits:
        assert broker.holder()[0] == MINE
    assert broker.call("get", 0, "somebody", MINE, WAIT, "again", LEASE) == [DONE, manifest]
    assert broker.stand_by() == [DONE, b"behind it"]
    assert broker.roles() == []


def test_a_get_that_lost_the_role_to_another_takes_nothing(broker):
    assert broker.stand_by() == [EMPTY, b"item"]
    broker.call("free_roles", MINE, LEASE)
    assert broker.stand_by(OTHER) == [EMPTY, b"item"]
    held = broker.holder()
    assert broker.stand_by() == [DECLINED]
    broker.put(b"x")
    assert broker.stand_by() == [DECLINED]
    assert broker.wait(MINE)[0] == BUSY
    assert broker.holder() == held
    assert broker.stand_by(OTHER) == [DONE, b"x"]


def test_a_get_that_lost_the_role_with_its_lease_takes_nothing(broker):
    assert broker.stand_by(lease=1) == [EMPTY, b"item"]
    until(lambda: broker.wait(OTHER)[0] == EMPTY)
    held = broker.holder()
    assert broker.stand_by() == [DECLINED]
    broker.put(b"x")
    assert broker.stand_by() == [DECLINED]
    assert broker.holder() == held
    assert broker.stand_by(OTHER) == [DONE, b"x"]
    assert broker.roles() == []
