"""The only process that gets from an anonymous queue reads ahead, and no other process can tell."""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import inside
import psutil
import pytest
from oracle.delivery_clients import alone, end_alone, ended
from programs import reserving as programs
from waiting import HOURS, LIMIT, Background, until

from pressure_mp import (
    ConsumerInUseError,
    DecodingError,
    Empty,
    JoinableQueue,
    LifoQueue,
    Queue,
    ShutDown,
    SimpleQueue,
)
from pressure_mp.buffering import due_thread, pace, read_ahead, window
from pressure_mp.drivers import drive, drive_on
from pressure_mp.engines.contract.items import EndPrefetch, Prefetch
from pressure_mp.engines.contract.replies import NoItem, Outcome
from pressure_mp.engines.redis import roles, turns
from pressure_mp.identity import shared_folder

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
    """A handle keeps what it read until it is told to end it; and no machine is too slow."""
    monkeypatch.setattr(window, "KEPT", HOURS)
    monkeypatch.setattr(pace, "_WINDOW", HOURS)
    monkeypatch.setattr(pace, "_LONG", HOURS)
    monkeypatch.setattr(due_thread, "sleep", lambda seconds: time.sleep(min(seconds, 0.1)))
    return inside.end_reservation


@pytest.fixture
def patient(monkeypatch):
    """A call that may not wait waits until it is served."""
    for module in (roles, turns):
        monkeypatch.setattr(module, "GRACE", LIMIT)


def scripts_run(client):
    return client.info("commandstats")["cmdstat_evalsha"]["calls"]


def filled(q, number=NUMBER):
    for item in range(number):
        q.put(item)
    q.flush()
    return q


def ahead(q):
    """Get until some are read ahead; how many were handed out."""
    for item in range(NUMBER):
        assert q.get() == item
        if inside.read_ahead(q) > 1:
            return item + 1
    raise AssertionError("it read nothing ahead")


def test_the_only_consumer_gets_many_items_in_few_round_trips(make, own_server, keeps):
    q = filled(make())
    with own_server.client() as client:
        before = scripts_run(client)
        assert [q.get() for _ in range(NUMBER)] == list(range(NUMBER))
        assert scripts_run(client) - before < NUMBER / 20
    keeps(q)
    stats = q.stats()
    assert (stats.length, stats.consumed_messages) == (0, NUMBER)
    assert stats.consumed_bytes == stats.produced_bytes


def test_the_next_items_are_asked_for_while_items_read_ahead_are_handed_out(
    make, own_server, keeps
):
    q = filled(make())
    number = ahead(q)
    while not inside.has_asked_ahead(q):
        assert q.get() == number
        number += 1
    with own_server.client() as client:
        until(lambda: last_call(client, q) == inside.last_call(q))
        client.client_pause(int(HOURS * 1000), all=False)
        try:
            here = inside.read_ahead(q)
            more = here + 1
            assert [q.get() for _ in range(more)] == list(range(number, number + more))
            more, number = inside.read_ahead(q), number + more
            assert more >= here
            assert [q.get() for _ in range(more)] == list(range(number, number + more))
        finally:
            client.client_unpause()
    number += more
    assert [q.get() for _ in range(NUMBER - number)] == list(range(number, NUMBER))


@pytest.fixture
def clock(keeps, monkeypatch):
    """What a consumer's pace is measured with; it goes on when it is told to."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(pace, "_WINDOW", 0.01)
    monkeypatch.setattr(pace, "_LONG", 0.005)
    monkeypatch.setattr(pace, "monotonic", lambda: clock.now)
    return clock


def test_a_consumer_that_takes_a_millisecond_an_item_asks_for_the_next_items_early(make, clock):
    q = filled(make(), 100)
    for item in range(100):
        assert q.get() == item
        if inside.has_asked_ahead(q):
            break
        clock.now += 0.001
    assert 1 < inside.read_ahead(q) <= 10
    assert [q.get() for _ in range(item + 1, 100)] == list(range(item + 1, 100))


def test_a_consumer_that_becomes_slow_gets_item_by_item_again(make, clock):
    q = filled(make())
    number = 0
    while not inside.has_asked_ahead(q):
        assert q.get() == number
        number += 1
        clock.now += 0.0001
    for item in range(number, number + 100 + inside.read_ahead(q)):
        assert q.get() == item
        clock.now += 0.02
    assert not inside.has_asked_ahead(q)
    assert not inside.holds(q)


def test_a_consumer_with_a_long_pause_after_its_first_item_reads_ahead_soon(make, clock):
    q = filled(make(), 100)
    for item in range(30):
        assert q.get() == item
        clock.now += 0.0001 if item else 60.0
    assert inside.read_ahead(q)


def test_a_slow_consumer_reads_nothing_ahead_though_some_of_its_gets_come_soon(make, clock):
    q = filled(make(), 100)
    for item in range(100):
        assert q.get() == item
        assert not inside.holds(q)
        clock.now += 0.03 if item % 5 else 0.0


def last_call(client, q):
    """The reader's, as the broker knows it."""
    return int(client.hget(f"__pressure__:{q.name}:mp:consumer_holder", "call"))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Queue, {"prefetch": 0}),
        (Queue, {"name": "named"}),
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


def test_another_one_is_served_when_the_reader_is_done(make, keeps):
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


def test_a_reader_that_finds_another_one_waiting_lets_it_pass(make, keeps):
    q = filled(make())
    other = inside.copy(q)
    number = ahead(q)
    getting = Background(other.get)
    until(lambda: in_line(q))
    mine = [q.get() for _ in range(inside.read_ahead(q))]
    assert mine == list(range(number, number + len(mine)))
    next_one = Background(q.get)
    # There are items for both: either may come first.
    left = number + len(mine)
    assert {getting.result(), next_one.result()} == {left, left + 1}
    other.close()


def in_line(q):
    with inside.client(q) as client:
        return client.hlen(f"__pressure__:{q.name}:mp:waiting")


@pytest.mark.parametrize("look", ["qsize", "empty", "shutdown", "stats", "get_nowait", "get_many"])
def test_another_one_sees_what_was_not_handed_out(make, keeps, patient, look):
    q = filled(make())
    other = inside.copy(q)
    number = ahead(q)
    arguments = {"shutdown": (True,), "get_many": (5, False)}.get(look, ())
    looking = Background(getattr(other, look), *arguments)
    looking.join(0.1)
    assert looking.is_alive()
    keeps(q)
    left, found = NUMBER - number, looking.result()
    expected = {
        "qsize": left,
        "empty": False,
        "shutdown": None,
        "get_nowait": number,
        "get_many": list(range(number, number + 5)),
    }
    assert (found.length == left) if look == "stats" else (found == expected[look])
    if look == "shutdown":
        with pytest.raises(ShutDown):
            q.get()
    other.close()


def test_a_delete_waits_for_the_reader(make, keeps):
    q = filled(make())
    other = inside.copy(q)
    ahead(q)
    deleting = Background(other.delete)
    deleting.join(0.1)
    assert deleting.is_alive()
    keeps(q)
    deleting.result()
    assert not q.exists()


def test_its_own_handle_counts_what_was_not_handed_out(make, keeps):
    q = filled(make())
    number = ahead(q)
    assert q.qsize() == NUMBER - number
    assert q.get() == number


def test_items_that_are_not_handed_out_soon_are_for_others(make, monkeypatch):
    monkeypatch.setattr(pace, "_WINDOW", HOURS)
    q = filled(make())
    number = ahead(q)
    until(lambda: not inside.holds(q))
    assert inside.read_ahead(q) == 0
    assert q.get() == number


def test_two_that_take_turns_get_item_by_item(make, own_server, start, keeps):
    q = filled(make())
    process, pipe = start(programs.get_when_told, q, method="spawn")
    got = []
    with own_server.client() as client:
        client.config_resetstat()
        for _ in range(100):
            got.append(q.get())
            pipe.send("get")
            got.append(pipe.recv())
        assert scripts_run(client) >= 200
    assert got == list(range(200))
    pipe.send("end")
    process.join()


def test_of_a_queue_that_was_given_a_bound_no_more_than_half_is_read_ahead(make, keeps):
    q = filled(make())
    q.maxsize = NUMBER // 10
    assert [q.get() for _ in range(500)] == list(range(500))
    assert 1 < inside.read_ahead(q) <= NUMBER // 20


def test_from_a_queue_with_a_bound_every_item_is_got_by_itself(make, own_server, keeps):
    q = filled(make(Queue, 200), 200)
    with own_server.client() as client:
        client.config_resetstat()
        assert [q.get() for _ in range(200)] == list(range(200))
        assert scripts_run(client) >= 200


def test_large_items_are_got_by_themselves_in_their_order(make, keeps):
    q = make()
    items = [bytes([number]) * (300_000 if number % 10 == 5 else 10) for number in range(100)]
    for item in items:
        q.put(item)
    q.flush()
    assert [q.get() for _ in items] == items


def test_a_get_that_may_not_wait_is_refused_while_a_consumer_keeps_items(make, keeps):
    q = filled(make())
    other = inside.copy(q)
    number = ahead(q)
    with pytest.raises(ConsumerInUseError):
        other.get_nowait()
    with pytest.raises(Empty):
        other.get(timeout=0.01)
    keeps(q)
    assert other.get_nowait() == number
    other.close()


def test_an_item_that_another_one_puts_back_comes_first(make, keeps):
    """It was got before the reader began; what the reader handed out is counted behind it."""
    q = filled(make(), 100)
    other = inside.copy(q)
    session = inside.bind(other).session()
    first = drive_on(inside.operations(other).get(False, None), session)
    assert [q.get() for _ in range(12)] == list(range(1, 13))
    assert inside.read_ahead(q)
    session.interrupted()
    taken = session.taken
    session.end()
    inside.run(other, inside.operations(other).take_back(taken))
    keeps(q)
    assert pickle.loads(first[-len(pickle.dumps(0, 5)) :]) == 0
    assert [q.get() for _ in range(88)] == [0, *range(13, 100)]
    other.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("is_behind", [False, True])
def test_items_handed_to_a_killed_consumer_do_not_come_again(make, start, method, is_behind):
    q = filled(make())
    process, pipe = start(programs.get_and_be_killed, q, is_behind, method=method)
    last = pipe.recv()
    process.join()
    assert [q.get(timeout=LIMIT) for _ in range(NUMBER - last - 1)] == list(range(last + 1, NUMBER))
    # The process that ended the reservation removes them after that.
    until(lambda: not files_of(process))


def files_of(process):
    return [name for name in os.listdir(shared_folder.find()) if f",{process.pid}," in name]


@pytest.mark.parametrize("looked", [False, True], ids=["", "it was looked at just before"])
@pytest.mark.parametrize("look", ["empty", "get_nowait"])
def test_items_not_yet_handed_to_a_killed_consumer_are_there_at_once(make, start, look, looked):
    q = filled(make())
    process, pipe = start(programs.get_and_be_killed, q, method="fork")
    last = pipe.recv()
    process.join()
    if looked:
        inside.binding(q).role_checks.note(None)
    left = [q.get_nowait()] if look == "get_nowait" else []
    while not q.empty():
        left.append(q.get_nowait())
    assert left == list(range(last + 1, NUMBER))


def test_items_handed_to_a_killed_consumer_come_again_where_its_count_cannot_be_seen(
    make, start, monkeypatch
):
    monkeypatch.setattr(shared_folder, "find", nowhere)
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
    first = pipe.recv()
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    assert q.get(timeout=LIMIT) == first
    assert [q.get() for _ in range(1000)] == list(range(first + 1, first + 1001))
    os.kill(process.pid, signal.SIGCONT)
    assert pipe.recv() == [first + 1001, first + 1002, first + 1003]
    process.join()


def test_a_get_that_comes_late_outlives_a_broken_connection(make, own_server, keeps):
    q = filled(make())
    number = ahead(q)
    inside.let_reservation_lapse(q)
    with own_server.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    assert [q.get() for _ in range(NUMBER - number)] == list(range(number, NUMBER))


@pytest.mark.parametrize("end", ["close", "exit"])
def test_a_consumer_that_ends_leaves_the_rest_and_no_file(make, start, end):
    q = filled(make())
    last = multiprocessing.get_context("spawn").Value("q", -1, lock=False)
    process, pipe = start(programs.get_all, q, 1000, last, method="spawn")
    assert [pipe.recv(), pipe.recv()] == ["begins", "got all"]
    pipe.send(end)
    process.join()
    assert q.get() == 1000
    assert not files_of(process)


def test_its_own_count_is_exact(make, monkeypatch):
    monkeypatch.setattr(pace, "_WINDOW", HOURS)
    q = make()
    for _ in range(30):
        for item in range(20):
            q.put(item)
        assert [q.get() for _ in range(5)] == list(range(5))
        assert {q.qsize() for _ in range(100)} == {15}
        assert [q.get() for _ in range(15)] == list(range(5, 20))


def test_each_item_that_is_put_counts_once(make):
    q = make()
    for number in range(100):
        q.put(number)
        assert q.qsize() == number + 1


class Broken:
    """What cannot be unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def test_no_item_passes_an_item_that_cannot_be_decoded(make, keeps):
    q, found = make(), []
    for item in range(200):
        q.put(Broken() if item % 7 == 3 else item)
    q.flush()
    while len(found) < 200:
        try:
            found.append(q.get(timeout=LIMIT))
        except DecodingError:
            found.append(None)
    assert found == [None if item % 7 == 3 else item for item in range(200)]
    keeps(q)
    assert len(q.rejected(200)) == found.count(None)


def test_items_that_are_not_handed_out_are_not_unpickled(make, keeps, tmp_path):
    q = filled(make(), 100)
    for _ in range(10):
        q.put(Touching(str(tmp_path)))
    q.flush()
    assert [q.get() for _ in range(100)] == list(range(100))
    assert inside.read_ahead(q)
    assert not os.listdir(tmp_path)
    q.get()
    assert len(os.listdir(tmp_path)) == 1


class Touching:
    """What leaves a file when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __setstate__(self, state):
        with open(os.path.join(state["folder"], str(time.monotonic_ns())), "x"):
            pass


def test_threads_that_share_a_handle_get_in_order(make, monkeypatch):
    """No get that begins after another one returned has an older item."""
    numbers = itertools.cycle([10, 1])
    monkeypatch.setattr(pace.Pace, "next_number", lambda pace, handed: next(numbers))
    q, gets = filled(make()), []

    def get_all():
        while True:
            began = time.monotonic()
            item = q.get()
            if item is None:
                return
            gets.append((item, began, time.monotonic()))

    threads = [Background(get_all) for _ in range(3)]
    for _ in threads:
        q.put(None)
    for thread in threads:
        thread.result()
    gets.sort()
    assert [item for item, _, _ in gets] == list(range(NUMBER))
    earliest = math.inf
    for _, began, end in reversed(gets):
        assert began <= earliest
        earliest = min(earliest, end)


def test_a_signal_handler_in_the_midst_of_a_get_uses_the_queue(make):
    q, mine, others = filled(make()), [], []

    def handle(*_):
        with contextlib.suppress(Empty):
            others.append(q.get_nowait())
        q.qsize()

    before = signal.signal(signal.SIGALRM, handle)
    try:
        while len(mine) + len(others) < NUMBER:
            signal.setitimer(signal.ITIMER_REAL, random.random() / 1000 + 1e-6)
            with contextlib.suppress(Empty):
                mine.append(q.get(timeout=0.1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert sorted(mine + others) == list(range(NUMBER))
    assert mine == sorted(mine)
    assert others


def test_items_got_at_the_end_of_a_program_do_not_come_again(make):
    q = filled(make())
    run = subprocess.run(
        [sys.executable, "-c", programs.GET_AT_THE_END],
        input=pickle.dumps(bytes(multiprocessing.current_process().authkey)) + pickle.dumps(q),
        capture_output=True,
        timeout=LIMIT,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.decode() == repr(list(range(150)))
    assert [q.get(timeout=LIMIT) for _ in range(NUMBER - 150)] == list(range(150, NUMBER))


def test_a_reservation_ends_also_when_its_handle_is_gone(make, own_server):
    q = filled(make())
    other = inside.copy(q)
    number = ahead(other)
    del other
    assert q.get(timeout=LIMIT) == number


def test_its_thread_ends_when_nothing_is_read_ahead(make, monkeypatch):
    monkeypatch.setattr(due_thread, "_LINGER", 0.05)
    q = filled(make())
    ahead(q)
    until(lambda: not inside.has_reader_thread(q))
    q.get()


def test_a_call_that_comes_late_reserves_nothing(make, keeps):
    q = filled(make(), 100)
    operations = inside.operations(q)
    inside.run(q, ended(end_alone("someone:reader-1", 5, 0)))
    late = inside.run(q, operations.prefetch(alone("someone:reader-1", 5, 0, 0, 10)))
    assert late.value == "late"
    assert q.get() == 0


def test_a_call_that_comes_twice_has_the_same_reply(make, keeps):
    q = filled(make(), 100)
    operations = inside.operations(q)
    first = inside.run(q, operations.prefetch(alone("someone:reader-1", 1, 0, 0, 10)))
    assert len(first.items) == 10
    second = inside.run(q, operations.prefetch(alone("someone:reader-1", 2, 4, 0, 10)))
    assert inside.run(q, operations.prefetch(alone("someone:reader-1", 2, 4, 0, 10))) == second
    assert second.items[:6] == first.items[4:]
    inside.run(q, ended(end_alone("someone:reader-1", 2, 7)))
    assert q.get() == 7


def test_items_handed_out_are_counted_in_bytes_however_they_were_read(make, own_server, keeps):
    q = make()
    sizes = [random.randrange(1, 200) for _ in range(100)]
    for size in sizes:
        q.put(bytes(size))
    q.flush()
    operations, handed, call = inside.operations(q), 0, 0
    read = 0  # behind what was handed out
    while handed < 90:
        call, more = call + 1, random.randrange(0, read + 1)
        handed, kept = handed + more, random.choice([read - more, 0])
        asking = ("someone:reader-1", call, handed, kept, random.randrange(1, 9))
        reply = inside.run(q, operations.prefetch(alone(*asking)))
        # Now and then the reply is lost.
        read = kept if random.random() < 0.3 else kept + len(getattr(reply, "items", []))
        key = f"__pressure__:{q.name}"
        with own_server.client() as client:  # stats() would count as a look
            left = client.lrange(key, 0, -1)
            produced, consumed, number = client.mget(
                f"{key}:stats:{of}"
                for of in ("produced_bytes", "consumed_bytes", "consumed_messages")
            )
        assert int(number or 0) == handed == len(sizes) - len(left)
        assert int(produced) - int(consumed or 0) == sum(map(len, left))
    inside.run(q, ended(end_alone("someone:reader-1", call, handed)))


def test_a_call_reads_on_behind_the_kept_items(make, keeps):
    q = filled(make(), 100)
    operations = inside.operations(q)
    first = inside.run(q, operations.prefetch(alone("someone:reader-1", 1, 0, 0, 10)))
    second = inside.run(q, operations.prefetch(alone("someone:reader-1", 2, 4, 6, 10)))
    assert inside.run(q, operations.prefetch(alone("someone:reader-1", 2, 4, 6, 10))) == second
    items = [pickle.loads(item[-5:]) for item in first.items + second.items]
    assert items == list(range(20))
    inside.run(q, ended(end_alone("someone:reader-1", 2, 12)))
    assert q.get() == 12


@pytest.mark.parametrize("look", ["length", "all taken"])
def test_kept_items_stay_reserved_whatever_the_reply(make, keeps, look):
    q = filled(make(), 10)
    operations = inside.operations(q)
    inside.run(q, operations.prefetch(alone("someone:reader-1", 1, 0, 0, 10)))
    if look == "length":
        inside.copy(q).qsize()
    reply = inside.run(q, operations.prefetch(alone("someone:reader-1", 2, 4, 6, 10)))
    assert reply == (Outcome.SHARED if look == "length" else NoItem())
    with pytest.raises(ConsumerInUseError):
        q.get_nowait()
    inside.run(q, ended(end_alone("someone:reader-1", 2, 8)))
    assert q.get() == 8


def test_a_reservation_that_others_ended_is_not_gone_on_with(make, keeps):
    q = filled(make(), 100)
    operations = inside.operations(q)
    inside.run(q, operations.prefetch(alone("someone:reader-1", 1, 0, 0, 10)))
    inside.run(q, ended(end_alone("someone:reader-1", 1, 4)))
    assert (
        inside.run(q, operations.prefetch(alone("someone:reader-1", 2, 6, 4, 10))) is Outcome.LATE
    )
    assert inside.run(q, ended(end_alone("someone:reader-1", 2, 6))) == 4
    assert q.get() == 4


def test_a_call_that_was_not_made_is_ended_with_what_was_handed_out_before(make, keeps):
    q = filled(make(), 100)
    operations = inside.operations(q)
    inside.run(q, operations.prefetch(alone("someone:reader-1", 1, 0, 0, 10)))
    inside.run(q, ended(end_alone("someone:reader-1", 2, 6)))
    assert q.get() == 6


def test_after_another_handle_looked_every_item_is_got_by_itself_for_a_while(
    make, own_server, keeps
):
    q = filled(make())
    other = inside.copy(q)
    number = ahead(q)
    looking = Background(other.qsize)
    until(lambda: is_looked_at(q))
    rest = inside.read_ahead(q)
    assert [q.get() for _ in range(rest + 1)] == list(range(number, number + rest + 1))
    assert NUMBER - number - rest - looking.result() in (0, 1)
    with own_server.client() as client:
        before = scripts_run(client)
        for _ in range(100):
            q.get()
        assert scripts_run(client) - before >= 100
    other.close()


def is_looked_at(q):
    with inside.client(q) as client:
        return client.hexists(f"__pressure__:{q.name}:mp:consumer_holder", "looked")


def test_why_blocked_tells_that_the_other_handle_reads_ahead(make, keeps):
    q = filled(make())
    ahead(q)
    why = inside.copy(q).why_blocked()
    assert (why.get.holder.state, why.get.holder.peer.pid) == ("reading", os.getpid())
    assert "which has read ahead for" in str(why)


def test_an_end_that_comes_late_ends_nothing_of_a_later_call(make, keeps):
    q = filled(make(), 100)
    operations = inside.operations(q)
    inside.run(q, operations.prefetch(alone("someone:reader-1", 1, 0, 0, 10)))
    inside.run(q, operations.prefetch(alone("someone:reader-1", 2, 4, 0, 10)))
    assert inside.run(q, ended(end_alone("someone:reader-1", 1, 4))) == 4
    inside.run(q, ended(end_alone("someone:reader-1", 2, 7)))
    assert q.get() == 7


def test_a_call_that_comes_late_reserves_nothing_whatever_was_said_since(make, keeps):
    q = filled(make(), 100)
    operations = inside.operations(q)
    inside.run(q, ended(end_alone("someone:reader-1", 1, 0)))
    inside.run(q, operations.prefetch(alone("other:reader-1", 1, 0, 0, 10)))
    assert (
        inside.run(q, operations.prefetch(alone("someone:reader-1", 2, 0, 0, 10))).value == "shared"
    )
    inside.run(q, ended(end_alone("other:reader-1", 1, 0)))
    for call in (1, 2):
        late = inside.run(q, operations.prefetch(alone("someone:reader-1", call, 0, 0, 10)))
        assert late.value == "late"


def test_late_calls_for_a_deleted_queue_leave_no_key(make, own_server):
    q = filled(make(), 10)
    operations, binding = inside.operations(q), inside.bind(q)
    q.delete()
    drive(operations.prefetch(alone("someone:reader-1", 1, 0, 0, 10)), binding.session())
    drive(
        ended(end_alone("someone:reader-1", 2, 0)),
        binding.session(),
    )
    with own_server.client() as client:
        assert client.keys(f"*{q.name}*") == []


def test_items_that_others_put_back_stay_in_front_of_reserved_items(make, keeps):
    """Some of the reserved items were put back before, and are older."""
    q = filled(make(), 100)
    operations = inside.operations(q)
    for reader in ("A#1", "B#1"):
        inside.run(q, operations.prefetch(Prefetch(reader, 1, 0, 0, 20)))
    inside.run(q, ended(EndPrefetch("A#1", 1, 0)))
    assert (
        len(inside.run(q, operations.prefetch(alone("someone:reader-1", 1, 0, 0, 10))).items) == 10
    )
    inside.run(q, ended(EndPrefetch("B#1", 1, 0)))
    inside.run(q, ended(end_alone("someone:reader-1", 1, 3)))
    assert [q.get() for _ in range(97)] == [*range(20, 40), *range(3, 20), *range(40, 100)]


class Slow:
    """What takes a while to unpickle, and says when it begins."""

    begins: threading.Event
    goes_on: threading.Event

    def __setstate__(self, state):
        Slow.begins.set()
        assert Slow.goes_on.wait(LIMIT)

    def __getstate__(self):
        return {"a": "state"}


def test_an_item_that_is_being_unpickled_is_not_given_to_others(make, monkeypatch):
    monkeypatch.setattr(pace, "monotonic", lambda: 0.0)  # no machine is too slow
    Slow.begins, Slow.goes_on = threading.Event(), threading.Event()
    q = filled(make(), 30)
    for item in (Slow(), "next"):
        q.put(item)
    q.flush()
    other = inside.copy(q)
    assert [q.get() for _ in range(30)] == list(range(30))
    assert inside.read_ahead(q)
    getting = Background(q.get)
    assert Slow.begins.wait(LIMIT)
    next_one = Background(other.get)
    next_one.join(0.2)
    assert next_one.is_alive()
    Slow.goes_on.set()
    assert isinstance(getting.result(), Slow)
    assert next_one.result() == "next"
    other.close()


@pytest.mark.parametrize("look", ["get", "get_nowait", "qsize"])
def test_items_handed_to_a_killed_consumer_do_not_come_again_however_late_others_look(
    make, start, own_server, look
):
    q = filled(make())
    process, pipe = start(programs.get_and_be_killed, q, method="fork")
    last = pipe.recv()
    process.join()
    with own_server.client() as client:
        assert not client.hset(f"__pressure__:{q.name}:mp:consumer_holder", "until", 1)
    found = getattr(q, look)()
    assert found == (NUMBER - last - 1 if look == "qsize" else last + 1)


class Looking:
    """What looks at its queue when it is unpickled."""

    handle = None

    def __setstate__(self, state):
        self.size = Looking.handle.qsize()

    def __getstate__(self):
        return {"a": "state"}


def test_a_look_in_the_midst_of_unpickling_does_not_wait_for_that(make, keeps, monkeypatch):
    monkeypatch.setattr(read_ahead.ReadAhead, "patience", HOURS)
    q = filled(make(), 30)
    for item in (Looking(), "next"):
        q.put(item)
    q.flush()
    Looking.handle = q
    assert [q.get() for _ in range(30)] == list(range(30))
    assert inside.read_ahead(q)
    assert q.get().size == 1
    assert q.get() == "next"
