"""A client that hears each notice of an inbox when it comes need not ask for it; none is missed."""

from __future__ import annotations

import pytest
from waiting import HOURS, LIMIT, Background, blocked, until

from pressure_mp import TaskQueue
from pressure_mp.engines.redis.listening import Listening

pytestmark = pytest.mark.usefixtures("no_ticks", "no_looks")


class Pair:
    """A worker, and a client that hears what became of its tasks."""

    def __init__(self, server):
        self.server = server
        self.queue = TaskQueue(url=server.url, id="required", lease=HOURS)
        self.inbox = self.queue.inbox(takes=False, lease=HOURS)
        self.number = 0
        #: What the worker has taken.
        self.task = None

    def put(self):
        self.number += 1
        self.queue.put(self.number, id=f"id{self.number}", inbox=self.inbox)

    def begin(self):
        self.put()
        self.task = self.queue.take(0)

    def go_on(self):
        """The worker tells the client what it did in the call in which it takes the next."""
        self.put()
        self.task = self.queue.take(0, ack=self.task)

    def hear(self):
        return [event.id for event in self.inbox.take(LIMIT)]

    def hear_one(self):
        """The client waits, and hears of the task that the worker has."""
        with self.server.client() as client:
            hearing = Background(self.hear)
            until(lambda: blocked(client) == 1)
            self.go_on()
            return hearing.result()


@pytest.fixture
def pair(own_server, monkeypatch):
    monkeypatch.setattr(Listening, "SECONDS", HOURS)
    pair = Pair(own_server)
    pair.begin()
    assert pair.hear_one() == ["id1"]  # where the numbers of notices begin is asked for
    assert pair.hear_one() == ["id2"]
    yield pair
    pair.task.ack()
    pair.inbox.close()
    pair.queue.delete()
    pair.queue.close()


def calls(server):
    with server.client() as client:
        return client.info("commandstats")["cmdstat_evalsha"]["calls"]


def test_a_client_that_hears_each_notice_asks_for_as_many_as_it_may_at_a_time(pair):
    before = calls(pair.server)
    rounds = 2 * Listening.MOST
    for number in range(rounds):
        assert pair.hear_one() == [f"id{number + 3}"]
    assert calls(pair.server) - before == rounds * 2 + 2  # to put, to take the next; to ask


def test_notices_that_were_heard_are_removed_when_a_client_asks_for_more(pair):
    with pair.server.client() as client:
        kept = [key for key in client.scan_iter() if key.endswith((b":notices", b":results"))]
        for number in range(Listening.MOST):
            assert pair.hear_one() == [f"id{number + 3}"]
        assert pair.inbox.take(0) == []
        assert [client.exists(key) for key in kept] == [0, 0]


def test_of_several_notices_the_first_is_heard_and_the_others_are_asked_for(pair):
    pair.go_on()
    pair.go_on()
    pair.go_on()
    assert pair.hear() == ["id3"]
    assert pair.hear() == ["id4", "id5"]
    assert pair.hear_one() == ["id6"]


def test_a_notice_that_came_another_way_comes_in_its_turn(pair):
    pair.task.ack()
    pair.begin()
    pair.go_on()
    assert pair.hear() == ["id3", "id4"]
    assert pair.hear_one() == ["id5"]


def test_a_notice_whose_bell_was_not_heard_comes_in_its_turn(pair):
    pair.go_on()
    with pair.server.client() as client:
        assert client.delete(*client.keys("*:bell:*")) == 1
    pair.go_on()
    assert pair.hear() == ["id3", "id4"]
    assert pair.hear_one() == ["id5"]


def test_a_large_result_is_asked_for(pair):
    pair.task.result = b"x" * 100_000
    assert pair.hear_one() == ["id3"]
    assert pair.hear_one() == ["id4"]
