"""One who could wait is served before others who do when there are items for all of them: the one
that has the role, or was granted it, may be a slow network away."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from oracle import clients
from programs import receiving as programs
from waiting import LIMIT, blocked, until

from pressure_mp import Queue
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
