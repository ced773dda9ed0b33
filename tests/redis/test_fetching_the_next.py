"""``prefetch=N``: while the items of one fetch are handed out, the next ones are on their way."""

from __future__ import annotations

import os
import threading
from itertools import chain

import pytest
import stopped
from programs import buffers as programs
from waiting import HOURS, LIMIT, Background, lasting, until

from pressure_mp import BrokerUnavailable, DecodingError, Empty, Full, Queue, ShutDown
from pressure_mp.buffering import pace
from pressure_mp.buffering.prefetching import Prefetching

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def make(valkey, name, monkeypatch, proxy_of):
    """Each fetch is of five items at most. Ways to the server end after the handles."""
    monkeypatch.setattr(pace, "MOST_ITEMS", 5)
    made = []

    def make(prefetch=10, url=valkey.url, **options):
        made.append(Queue(name=name, url=url, prefetch=prefetch, **{"lease": HOURS, **options}))
        return made[-1]

    yield make
    for handle in made:
        handle.close()
    made[0].delete()
    with valkey.client() as client:
        assert lasting(client, f"*{name}*") == []


@pytest.fixture
def filling(make):
    return make(prefetch=0)


def in_flight(filling, number):
    """Wait until so many are: a fetch that was sent may not be done yet."""
    until(lambda: filling.stats().in_flight == number)


def test_the_next_items_are_fetched_before_they_are_needed(make, filling):
    q = make()
    filling.put_many(range(30))
    assert q.get() == 0
    in_flight(filling, 10)
    assert [q.get() for _ in range(4)] == [1, 2, 3, 4]
    assert q.get() == 5
    in_flight(filling, 10)  # the first five are told to be handed out
    assert [q.get() for _ in range(24)] == list(range(6, 30))
    with pytest.raises(Empty):
        q.get_nowait()
    stats = filling.stats()
    assert (stats.in_flight, stats.length, stats.consumed_messages) == (0, 0, 30)


@pytest.mark.parametrize("prefetch", [3, 5, 9, 10, 12])
def test_no_more_than_prefetch_says_is_fetched(make, filling, prefetch):
    q = make(prefetch)
    filling.put_many(range(30))
    got = []
    while filling.stats().length:
        got.append(q.get())
        q.qsize()  # it hears what it asked for
        assert filling.stats().in_flight <= (prefetch if prefetch >= 10 else 5)
    assert got + [q.get() for _ in range(30 - len(got))] == list(range(30))


def test_fewer_items_than_a_fetch_may_have_say_that_there_are_no_more(make, filling):
    q = make()
    filling.put_many(range(4))
    assert q.get() == 0
    filling.put_many(range(4, 8))
    assert filling.stats().in_flight == 4
    assert [q.get() for _ in range(7)] == list(range(1, 8))


def test_items_that_come_later_come_behind_the_others(make, filling):
    q = make()
    filling.put_many(range(5))
    assert q.get() == 0  # and there is no next one
    until(lambda: filling.why_blocked().get.line == ())
    filling.put_many(range(5, 12))
    assert [q.get() for _ in range(11)] == list(range(1, 12))


@pytest.mark.parametrize("got", [1, 5, 6, 7])
def test_items_that_were_not_handed_out_go_back_in_order(make, filling, got):
    q = make()
    filling.put_many(range(30))
    assert [q.get() for _ in range(got)] == list(range(got))
    in_flight(filling, 10)
    q.close()
    assert filling.stats().in_flight == 0
    assert filling.get_many(30) == list(range(got, 30))


@pytest.mark.parametrize("got", [5, 7])
def test_items_that_were_not_handed_out_go_back_when_the_handle_is_dropped(
    make, name, valkey, filling, got
):
    q = Queue(name=name, url=valkey.url, prefetch=10)
    filling.put_many(range(30))
    assert [q.get() for _ in range(got)] == list(range(got))
    in_flight(filling, 15 - got if got > 5 else 5)  # the broker knows what was handed out
    del q
    in_flight(filling, 0)
    assert filling.get_many(30) == list(range(got, 30))


def test_items_that_go_back_for_a_put_on_a_full_queue_are_fetched_again(make, filling):
    """A put that finds the queue full has all fetched items given back, so that they count."""
    filling.maxsize = 20
    q = make(buffering=4)
    filling.put_many(range(20))
    assert [q.get() for _ in range(2)] == [0, 1]
    in_flight(filling, 10)
    filling.put_many(range(20, 30))
    with pytest.raises(Full):
        q.put("one more", block=False)
    assert filling.stats().in_flight == 0
    assert [q.get() for _ in range(28)] == list(range(2, 30))


@pytest.mark.parametrize("got", [1, 5, 6])
def test_every_item_is_counted_once(make, filling, got):
    q = make()
    filling.put_many(range(20))
    for _ in range(got):
        q.get()
    assert q.qsize() == 20 - got
    assert q.stats().length + q.stats().in_flight >= 20 - got
    assert [q.get() for _ in range(20 - got)] == list(range(got, 20))
    assert (q.qsize(), q.empty()) == (0, True)


def test_the_broker_is_soon_told_of_items_that_were_handed_out(make, filling):
    """Also of the fetch before, when there is nothing more to fetch."""
    q = make()
    filling.put_many(range(8))
    assert [q.get() for _ in range(7)] == list(range(7))
    in_flight(filling, 1)


def test_before_one_waits_it_is_told_what_was_handed_out(make, filling):
    q = make()
    filling.put_many(range(8))
    assert [q.get() for _ in range(8)] == list(range(8))
    getting = Background(q.get)
    in_flight(filling, 0)
    filling.put(8)
    assert getting.result() == 8


def test_the_end_of_the_queue_comes_behind_its_last_item(make, filling):
    q = make()
    filling.put_many(range(10))
    filling.shutdown()
    assert list(q) == list(range(10))
    with pytest.raises(ShutDown):
        q.get()


def test_an_immediate_shutdown_drops_the_prefetched_items(make, filling):
    q = make()
    filling.put_many(range(30))
    q.get()
    q.shutdown(immediate=True)
    with pytest.raises(ShutDown):
        q.get()
    assert (filling.stats().in_flight, filling.unfinished_tasks) == (0, 1)


def test_a_large_item_comes_in_its_place(make, filling):
    q = make()
    large = b"large" * 100_000
    items = [*range(7), large, *range(8, 16)]
    for item in items:
        filling.put(item)
    assert [q.get() for _ in range(16)] == items


def test_an_item_that_cannot_be_decoded_is_set_aside_and_the_others_come(make, name, valkey):
    raw = make(prefetch=0, serializer="raw")
    q = make(serializer="json")
    raw.put_many([*(b"%d" % number for number in range(7)), b"no json", b"8", b"9"])
    assert [q.get() for _ in range(7)] == list(range(7))
    with pytest.raises(DecodingError):
        q.get()
    assert (q.get(), q.get()) == (8, 9)
    assert raw.rejected() == [b"no json"]


def test_threads_get_every_item_once(make, filling):
    q = make()
    filling.put_many([*range(1000), *[None] * 3])
    getting = [Background(lambda: list(iter(q.get, None))) for _ in range(3)]
    got = [one.result() for one in getting]
    assert [sorted(each) for each in got] == got
    assert sorted(chain(*got)) == list(range(1000))


def test_two_that_fetch_have_a_half_each(make, filling):
    one, other = make(), make()
    filling.put_many(range(12))
    assert one.get() == 0
    in_flight(filling, 10)
    assert other.get() == 10  # a half of two
    assert filling.stats().length == 1


# Its process, its connection


def test_a_killed_process_loses_nothing_that_it_was_not_handed(make, start, filling):
    filling.put_many(range(30))
    process, pipe = start(programs.get_and_act, make(), 7, "kill", method="fork")
    assert pipe.recv() == list(range(7))
    in_flight(filling, 8)  # it told what it handed out
    assert filling.get_many(30) == list(range(15, 30))
    pipe.send("die")
    process.join()
    assert filling.get(timeout=LIMIT) == 7
    assert filling.get_many(30) == list(range(8, 15))


@pytest.mark.parametrize("got", [1, 7])
def test_no_item_of_a_killed_process_comes_twice_while_more_is_on_its_way(
    make, start, filling, got
):
    filling.put_many(range(30))
    process, pipe = start(programs.get_and_act, make(lease=HOURS), got, "kill", method="fork")
    assert pipe.recv() == list(range(got))
    pipe.send("die")  # most often before it told what it handed out
    process.join()
    rest = [filling.get(timeout=LIMIT) for _ in range(30 - got)]
    assert sorted(rest) == list(range(got, 30))
    assert filling.qsize() == filling.stats().in_flight == 0


def test_a_process_that_ends_gives_back_all(make, start, filling):
    filling.put_many(range(30))
    process, pipe = start(programs.get_and_act, make(), 7, "return", method="fork")
    assert pipe.recv() == list(range(7))
    pipe.send("go on")
    process.join()
    assert filling.stats().in_flight == 0
    assert filling.get_many(30) == list(range(7, 30))


def test_a_stopped_process_loses_what_it_fetched_after_its_lease(make, start, filling):
    other = make(prefetch=0, lease=0.5)
    filling.put_many(range(15))
    process, pipe = start(programs.get_and_tell, make(lease=0.5), 7, method="fork")
    assert pipe.recv() == list(range(7))
    in_flight(filling, 8)
    stopped.loses(list(range(7, 15)), process, pipe, other)


def test_a_fork_hands_out_what_it_fetches_itself(make, filling):
    q = make()
    filling.put_many(range(30))
    assert [q.get() for _ in range(2)] == [0, 1]
    in_flight(filling, 10)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, b"%d" % q.get())
        os._exit(0)
    os.wait()
    assert os.read(reading, 9) == b"10"
    assert [q.get() for _ in range(8)] == list(range(2, 10))


@pytest.fixture
def losing(monkeypatch, proxy_of, valkey):
    """Makes a way to the server on which so many replies are lost from when the next items are
    asked for."""

    def make(losses):
        proxy, ask = proxy_of(valkey), Prefetching._ask_ahead

        def ask_and_lose(*args):
            proxy.lose(losses)
            ask(*args)

        monkeypatch.setattr(Prefetching, "_ask_ahead", ask_and_lose)
        return proxy

    return make


@pytest.mark.parametrize("losses", [1, 3])
def test_items_come_once_when_the_reply_is_lost(make, filling, losing, losses):
    proxy = losing(losses)
    q = make(url=proxy.url)
    filling.put_many(range(40))
    assert [q.get() for _ in range(40)] == list(range(40))
    assert proxy.lost >= 7 * losses
    proxy.lose(0)
    assert filling.stats().consumed_messages == 40


def test_items_come_once_when_the_broker_does_not_answer(make, filling, losing):
    proxy = losing(2)
    q = make(url=proxy.url, reconnect=0)
    filling.put_many(range(40))
    assert [q.get() for _ in range(5)] == [0, 1, 2, 3, 4]
    until(lambda: proxy.lost)
    with pytest.raises(BrokerUnavailable):
        q.get()
    proxy.lose(0)
    assert q.get() == 5
    q.close()
    until(lambda: filling.stats().in_flight == 0)
    assert filling.get_many(40) == list(range(6, 40))


def test_items_come_once_over_connections_that_break(make, filling, proxy_of, valkey):
    proxy = proxy_of(valkey)
    q = make(url=proxy.url)
    filling.put_many(range(5000))
    done = threading.Event()
    trouble = Background(proxy.trouble, done)
    try:
        assert [q.get(timeout=60) for _ in range(5000)] == list(range(5000))
    finally:
        done.set()
    trouble.result()
    assert filling.stats().length == 0
