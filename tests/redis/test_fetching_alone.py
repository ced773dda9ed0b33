"""The only consumer of an anonymous queue fetches ahead, exactly as far as nobody can tell."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import inside
import psutil
import pytest
from programs import fetching_alone as programs
from waiting import HOURS, LIMIT, Background, until

from pressure_mp import ConsumerInUseError, Empty, JoinableQueue, LifoQueue, Queue, SimpleQueue
from pressure_mp.background import hand_outs
from pressure_mp.buffering import incoming_alone

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

NUMBER = 2000


@pytest.fixture
def make(own_server):
    """Handles that are closed at the end."""
    made = []

    def make(kind=Queue, *args, **options):
        made.append(kind(*args, url=own_server.url, **options))
        return made[-1]

    yield make
    for handle in made:
        handle.close()


@pytest.fixture
def keeps(monkeypatch):
    """A handle gives back what it fetched when it is told to, and not by itself."""
    monkeypatch.setattr(incoming_alone, "_KEPT", HOURS)
    monkeypatch.setattr(incoming_alone, "_WINDOW", HOURS)  # no machine is too slow
    monkeypatch.setattr(incoming_alone.time, "sleep", lambda seconds: time_sleep(min(seconds, 0.1)))
    return inside.let_expire


time_sleep = time.sleep


def scripts_run(client):
    return client.info("commandstats")["cmdstat_evalsha"]["calls"]


def filled(q, number=NUMBER):
    for item in range(number):
        q.put(item)
    q.flush()
    return q


def ahead(q):
    """Get until it fetched some ahead; how many were handed out."""
    for item in range(NUMBER):
        assert q.get() == item
        if inside.fetched(q) > 1:
            return item + 1
    raise AssertionError("it fetched nothing ahead")


def test_the_only_consumer_gets_many_items_in_few_round_trips(make, own_server, keeps):
    q = filled(make())
    with own_server.client() as client:
        before = scripts_run(client)
        assert [q.get() for _ in range(NUMBER)] == list(range(NUMBER))
        assert scripts_run(client) - before < NUMBER / 20


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Queue, {"prefetch": 0}),
        (Queue, {"name": "named"}),
        (Queue, {"maxsize": NUMBER}),
        (Queue, {"eof": "producers"}),
        (JoinableQueue, {}),
        (SimpleQueue, {}),
        (LifoQueue, {}),
    ],
)
def test_others_get_item_by_item(make, own_server, keeps, kind, options):
    q = make(kind, **options)
    for item in range(100):
        q.put(item)
    with own_server.client() as client:
        client.config_resetstat()
        assert len([q.get() for _ in range(100)]) == 100
        assert scripts_run(client) >= 100
    if options.get("name"):
        q.delete()


def test_what_was_not_handed_out_goes_back_before_another_one_is_served(make, keeps):
    q = filled(make())
    other = inside.copy(q)
    number = ahead(q)
    getting = Background(other.get)
    getting.join(0.1)
    assert getting.is_alive()
    keeps(q)
    assert getting.result() == number
    assert [q.get(), other.get(), q.get()] == [number + 1, number + 2, number + 3]
    other.close()


@pytest.mark.parametrize("look", ["qsize", "empty", "shutdown"])
def test_another_one_counts_what_was_not_handed_out(make, keeps, look, monkeypatch):
    monkeypatch.setattr(incoming_alone, "_GRACE", LIMIT)
    q = filled(make())
    other = inside.copy(q)
    number = ahead(q)
    arguments = {"immediate": True} if look == "shutdown" else {}
    looking = Background(getattr(other, look), **arguments)
    looking.join(0.1)
    assert looking.is_alive()
    keeps(q)
    left = NUMBER - number
    assert looking.result() == {"qsize": left, "empty": False, "shutdown": None}[look]
    assert other.qsize() == (0 if look == "shutdown" else left)
    other.close()


def test_its_own_handle_counts_what_was_not_handed_out(make, keeps):
    q = filled(make())
    number = ahead(q)
    assert q.qsize() == NUMBER - number


def test_what_is_not_handed_out_soon_goes_back(make, monkeypatch):
    monkeypatch.setattr(incoming_alone, "_WINDOW", HOURS)
    q = filled(make())
    number = ahead(q)
    until(lambda: q.stats().in_flight == 0)
    assert inside.fetched(q) == 0
    assert q.get() == number


def test_from_then_on_every_item_is_got_by_itself(make, own_server, keeps):
    q = filled(make())
    other = inside.copy(q)
    other.get()
    with own_server.client() as client:
        before = scripts_run(client)
        assert [q.get() for _ in range(200)] == list(range(1, 201))
        assert scripts_run(client) - before >= 200
    other.close()


def test_a_queue_that_was_given_a_bound_is_got_from_item_by_item(make, keeps):
    q = filled(make())
    q.maxsize = NUMBER
    with pytest.raises(AssertionError, match="nothing ahead"):
        ahead(q)


def test_one_that_may_not_wait_is_told_of_a_stopped_consumer(make, keeps):
    q = filled(make())
    other = inside.copy(q)
    number = ahead(q)
    with pytest.raises(ConsumerInUseError, match="has not yet given back"):
        other.get_nowait()
    with pytest.raises(Empty):
        other.get(timeout=0.01)
    keeps(q)
    assert other.get_nowait() == number
    other.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_a_killed_consumer_was_handed_does_not_come_again(make, start, method):
    q = filled(make())
    process, pipe = start(programs.get_and_be_killed, q, method=method)
    last = pipe.recv()
    process.join()
    assert [q.get(timeout=LIMIT) for _ in range(NUMBER - last - 1)] == list(range(last + 1, NUMBER))


def test_where_nobody_can_see_what_it_was_handed_that_comes_again(make, start, monkeypatch):
    monkeypatch.setattr(hand_outs, "_folder", nowhere)
    q = filled(make())
    process, pipe = start(programs.get_and_be_killed, q, method="fork")
    last = pipe.recv()
    process.join()
    first = q.get(timeout=LIMIT)
    assert first <= last
    assert [q.get() for _ in range(NUMBER - first - 1)] == list(range(first + 1, NUMBER))


def nowhere(make=False):
    raise OSError("no place")


def test_a_consumer_that_was_stopped_for_long_hands_out_nothing_that_others_got(make, start):
    q = filled(make(lease=1))
    process, pipe = start(programs.get_some_and_stop, q, 300, LIMIT, method="spawn")
    fetched = pipe.recv()
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    first = q.get(timeout=LIMIT)
    assert first == 300, fetched
    assert [q.get() for _ in range(1000)] == list(range(301, 1301))
    os.kill(process.pid, signal.SIGCONT)
    assert pipe.recv() == [1301, 1302, 1303]
    process.join()


@pytest.mark.parametrize("end", ["close", "exit"])
def test_a_consumer_that_ends_gives_back_and_leaves_no_file(make, start, end):
    q = filled(make())
    last = multiprocessing.get_context("spawn").Value("q", -1, lock=False)
    process, pipe = start(programs.get_all, q, 1000, last, method="spawn")
    assert [pipe.recv(), pipe.recv()] == ["begins", "got all"]
    pipe.send(end)
    process.join()
    assert q.get() == 1000
    assert not [name for name in os.listdir(hand_outs._folder()) if f"_{process.pid}_" in name]
