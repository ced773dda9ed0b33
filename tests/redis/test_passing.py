"""One who could wait is served before others who do when there are items for all of them: the one
that has the role, or was granted it, may be a slow network away."""

from __future__ import annotations

import pytest
from oracle import clients

from pressure_mp.engines.redis.statuses import BUSY, DONE, WAIT

LEASE = clients.LEASE
FIRST, SECOND, THIRD = "here/1/1:1", "here/2/2:1", "here/3/3:1"


class Broker(clients.Client):
    """Calls in the name of any ticket, each over a connection that is idle again after it."""

    def get(self, ticket, op="get", args=(0,)):
        session = self.binding.session()
        try:
            who = f"client of {ticket}", ticket, WAIT, "first", LEASE
            return session.script(op, (*args, *who))
        finally:
            session.end()

    def get_many(self, ticket, limit):
        return self.get(ticket, "get_many", (limit, 10_000, 0))


@pytest.fixture
def broker(server, name):
    found = Broker(server.url, name)
    found.open()
    return found


def put(broker, number):
    for item in range(number):
        broker.put(b"%d" % item)


def test_one_who_comes_passes_a_holder_when_there_is_an_item_for_each(broker):
    broker.get(FIRST)  # waits with the role
    put(broker, 3)
    assert broker.get(SECOND) == [DONE, b"0"]
    assert broker.get(SECOND) == [DONE, b"1"]
    assert broker.get(SECOND)[0] == BUSY
    assert broker.get(FIRST) == [DONE, b"2"]


def test_who_is_in_line_has_an_item_left_too(broker):
    broker.get(FIRST)
    assert broker.get(SECOND)[0] == BUSY  # and stands in line
    put(broker, 3)
    assert broker.get(THIRD) == [DONE, b"0"]
    assert broker.get(THIRD)[0] == BUSY


def test_one_who_wants_many_leaves_enough_for_those_who_wait(broker):
    broker.get(FIRST)
    put(broker, 4)
    assert broker.get_many(SECOND, 4)[0] == BUSY  # and stands in line
    assert broker.get_many(THIRD, 3)[0] == BUSY
    assert broker.get_many("here/4/4:1", 1)[0] == DONE
    assert broker.get(FIRST) == [DONE, b"1"]
