"""A call that could wait is served before clients that wait, when there is an item or space for
each of them: the client that has the role, or was granted it, may be a slow network away."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from oracle import clients
from programs import receiving as programs
from waiting import LIMIT, blocked, until

from pressure_mp import Queue
from pressure_mp.engines.redis.statuses import BUSY, DONE, FULL, WAIT

LEASE = clients.LEASE
FIRST, SECOND, THIRD = "here/1/1:1", "here/2/2:1", "here/3/3:1"


class Broker(clients.Client):
    """Calls in the name of any ticket, each over a connection that is idle again after it."""

    def call(self, ticket, op, args):
        session = self.binding.session()
        try:
            caller = f"client of {ticket}", ticket, WAIT, "first", LEASE
            return session.script(op, (*args, *caller))
        finally:
            session.end()

    def take(self, ticket):
        return self.call(ticket, "get", (0,))

    def take_many(self, ticket, limit):
        return self.call(ticket, "get_many", (limit, 10_000, 0))

    def add(self, ticket):
        return self.call(ticket, "put", (b"x", 0, b"", 0))

    def add_many(self, ticket, number):
        return self.call(ticket, "put_many", (number, *[b"x"] * number))


@pytest.fixture
def broker(server, name):
    found = Broker(server.url, name)
    found.open()
    return found


@pytest.fixture
def full(server, name):
    """A queue with as many items as its bound, 4."""
    found = Broker(server.url, name)
    found.open(4)
    put(found, 4)
    return found


def put(broker, number):
    for item in range(number):
        broker.put(b"%d" % item)


def test_a_consumer_passes_a_holder_when_there_is_an_item_for_each(broker):
    broker.take(FIRST)  # waits with the role
    put(broker, 3)
    assert broker.take(SECOND) == [DONE, b"0"]
    assert broker.take(SECOND) == [DONE, b"1"]
    assert broker.take(SECOND)[0] == BUSY
    assert broker.take(FIRST) == [DONE, b"2"]


def test_a_consumer_in_line_has_an_item_left_too(broker):
    broker.take(FIRST)
    assert broker.take(SECOND)[0] == BUSY  # and stands in line
    put(broker, 3)
    assert broker.take(THIRD) == [DONE, b"0"]
    assert broker.take(THIRD)[0] == BUSY


def test_a_consumer_of_many_leaves_items_for_those_that_wait(broker):
    broker.take(FIRST)
    put(broker, 4)
    assert broker.take_many(SECOND, 4)[0] == BUSY  # and stands in line
    assert broker.take_many(THIRD, 3)[0] == BUSY
    assert broker.take_many("here/4/4:1", 1)[0] == DONE
    assert broker.take(FIRST) == [DONE, b"1"]


def test_a_producer_passes_a_holder_when_there_is_space_for_each(full):
    assert full.add(FIRST)[0] == FULL  # waits with the role
    for _ in range(3):
        full.get()
    assert full.add(SECOND) == [DONE]
    assert full.add(SECOND) == [DONE]
    assert full.add(SECOND)[0] == BUSY
    assert full.add(FIRST) == [DONE]
    assert full.length() == 4


def test_a_producer_in_line_has_space_left_too(full):
    full.add(FIRST)
    assert full.add(SECOND)[0] == BUSY  # and stands in line
    for _ in range(3):
        full.get()
    assert full.add(THIRD) == [DONE]
    assert full.add(THIRD)[0] == BUSY


def test_a_producer_of_many_leaves_space_for_those_that_wait(full):
    full.add(FIRST)
    for _ in range(4):
        full.get()
    assert full.add_many(SECOND, 4)[0] == BUSY  # and stands in line
    assert full.add_many(THIRD, 3)[0] == BUSY
    assert full.add_many("here/4/4:1", 1) == [DONE, 1]
    assert full.add(FIRST) == [DONE]


def test_a_stopped_get_of_a_named_queue_leaves_others_the_items_that_are_there_for_them(
    own_server, name, start
):
    q = Queue.create(name, url=own_server.url, lease=3600)
    process, pipe = start(programs.get_items, q, 1, method="spawn")
    assert pipe.recv() == "begins"
    with own_server.client() as client:
        until(lambda: blocked(client) == 1)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    q.put("first")
    q.put("second")
    assert q.get(timeout=LIMIT) == "first"
    os.kill(process.pid, signal.SIGCONT)
    assert pipe.recv() == "second"
    process.join()
    q.delete()
