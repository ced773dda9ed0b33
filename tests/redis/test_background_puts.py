"""Which puts are sent in the background without an option, in which order, and which calls wait."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import inside
import pytest
import started
from brokers.servers import Server
from programs import background_puts as programs
from waiting import HOURS, LIMIT, Background, until

from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    JoinableQueue,
    LifoQueue,
    Queue,
    ShutDown,
    SimpleQueue,
)
from pressure_mp.buffering.buffered_put import BufferedPut
from pressure_mp.handles import unsent

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture
def make(own_server, name):
    """Handles that are closed at the end, of queues that are then deleted."""
    made = []

    def make(kind=Queue, *args, **options):
        made.append(kind(*args, url=own_server.url, **options))
        return made[-1]

    yield make
    for handle in made:
        if handle.exists():
            handle.delete()
        handle.close()


@pytest.fixture
def paused(own_server):
    """A context in which the server does not write."""

    @contextmanager
    def paused():
        with own_server.client() as client:
            client.client_pause(int(HOURS * 1000), all=False)
            try:
                yield client
            finally:
                client.client_unpause()

    return paused


def used(q):
    """The queue, where this process and its thread are known to the broker."""
    q.put("first")
    assert q.get() == "first"
    return q


def length(client, q):
    return client.llen(inside.binding(q).key("data"))


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_put_into_an_anonymous_queue_does_not_wait_for_the_broker(make, paused, kind):
    q = used(make(kind))
    with paused() as client:
        q.put("sent later")
        q.put_nowait("and this")
        assert length(client, q) == 0
    assert [q.get(), q.get()] == ["sent later", "and this"]


def waits(paused, put):
    """Whether a put returns only when the broker has the item."""
    with paused():
        putting = Background(put, "item")
        putting.join(0.1)
        waits = putting.is_alive()
    putting.result()
    return waits


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Queue, {"name": "named"}),
        (Queue, {"maxsize": 10}),
        (Queue, {"buffering": 0}),
        (JoinableQueue, {"maxsize": 10}),
        (SimpleQueue, {}),
        (LifoQueue, {}),
    ],
)
def test_other_puts_wait_for_it(make, paused, kind, options):
    assert waits(paused, used(make(kind, **options)).put)


def test_a_program_is_told_by_the_environment(make, paused, monkeypatch):
    monkeypatch.setenv("PRESSURE_BUFFERING", "0")
    assert waits(paused, used(make()).put)
    monkeypatch.setenv("PRESSURE_BUFFERING", "8")
    assert not waits(paused, used(make(name="named")).put)
    assert not waits(paused, used(make(maxsize=10)).put)
    assert waits(paused, used(make(buffering=0)).put)  # it says so itself
    assert waits(paused, used(make(SimpleQueue)).put)


@pytest.mark.parametrize(
    ("said", "error"), [("many", ArgumentError), ("-1", ArgumentError), ("9999999", ArgumentError)]
)
def test_a_wrong_value_of_the_environment_variable_is_refused(said, error, monkeypatch):
    monkeypatch.setenv("PRESSURE_BUFFERING", said)
    with pytest.raises(error, match="PRESSURE_BUFFERING"):
        Queue(url="memory://")


@pytest.mark.parametrize("wrong", [1.5, True, "5"])
def test_to_fetch_ahead_is_a_number_of_items(wrong):
    with pytest.raises(ArgumentTypeError, match="prefetch"):
        Queue(url="memory://", prefetch=wrong)


def test_items_of_a_process_arrive_in_the_order_of_its_puts_over_all_its_queues(make, start):
    one, other = make(), make()
    _, pipe = start(programs.put_in_turns, one, other, 2000)
    seen = set()
    with inside.client(one) as client:
        while len(seen) < 10 or max(seen) < 2000:
            later = length(client, other)
            assert length(client, one) >= later
            seen.add(later)
            if later == 2000:
                break
    assert pipe.recv() == "put"
    assert len(seen) > 2  # it was looked at meanwhile


def test_one_thread_sends_for_all_queues(make, paused):
    queues = [used(make()) for _ in range(5)]
    with paused():
        for q in queues:
            q.put("item")
        url = queues[0].url
        assert len([each for each in threading.enumerate() if url in each.name]) == 1
    assert [q.get() for q in queues] == ["item"] * 5


def test_a_full_queue_does_not_keep_other_queues_waiting(make, name):
    full, rival, free = (
        make(maxsize=2, name=name, buffering=5),
        make(name=name, buffering=0),
        used(make()),
    )
    full.put("first")
    full.flush()
    rival.put("takes the space that the other saw")
    full.put("waits")
    free.put("goes on")
    assert free.get(timeout=LIMIT) == "goes on"
    assert [rival.get() for _ in range(3)][2] == "waits"


def test_an_acknowledgement_is_sent_when_what_was_put_before_it_is_there(make, start, name):
    jobs, results = make(JoinableQueue, name=name), make()
    jobs.put("job")
    process, pipe = start(programs.report_and_die, jobs, results, 3000)
    assert pipe.recv() == "done"
    process.join()
    assert jobs.unfinished_tasks == 0
    assert results.qsize() == 3000


def test_an_acknowledgement_raises_what_went_wrong_with_what_was_put_before(make, name):
    jobs, results = make(JoinableQueue, name=name), used(make())
    jobs.put("job")
    assert jobs.get() == "job"
    inside.run(results, inside.operations(results).close(True, None, once=False))
    results.put("result")
    with pytest.raises(ShutDown) as caught:
        jobs.task_done()
    assert caught.value.rest == ["result"]
    assert jobs.unfinished_tasks == 1
    jobs.task_done()  # it was said


MIDST = """
import gc, os, signal, sys, time
from pressure_mp import Queue
a, b = Queue(url=sys.argv[1]), Queue(url=sys.argv[1])
a.put(0), b.put(0)
calls = 0

def use(*_):
    global calls
    calls += 1
    if calls % 3 == 0: a.qsize()
    if calls % 3 == 1: b.flush()
    if calls % 3 == 2: b.put("from inside")
    # So soon that little is put until then: of two queues in turns each item is a round trip.
    signal.setitimer(signal.ITIMER_REAL, 0.0001)
"""
SIGNALS = """
signal.signal(signal.SIGALRM, use)
use()
number = 0
while calls < 300:
    number += 1
    a.put(number), b.put(number)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
FINALIZERS = """
signal.signal(signal.SIGALRM, signal.SIG_IGN)
made = ended = 0
class Cycle:
    def __init__(self):
        global made
        made, self.cycle = made + 1, self
    def __del__(self):
        global ended
        try: use()
        finally: ended += 1
gc.set_threshold(5)
number = 0
while calls < 300:
    number += 1
    Cycle()
    a.put(number), b.put(number)
    # One that waits in another thread for what was put keeps the others from running.
    if number % 50 == 0: a.flush(), b.flush()
# None is left for the end of the program, when its queues are gone: another thread may have one.
while ended < made: gc.collect()
"""
END = """
a.flush(), b.flush()
def rest(q):  # as many as there was time to put: one by one that would take minutes
    found = []
    while q.qsize(): found += q.get_many(1000)
    return found
print(rest(a) == [*range(number + 1)])
print([item for item in rest(b) if item != "from inside"] == [*range(number + 1)])
"""


def run(program, *arguments):
    """What a program prints."""
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    environment = started.environment()
    found = subprocess.run(
        command, capture_output=True, text=True, timeout=2 * LIMIT, env=environment
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


def test_a_signal_handler_in_the_midst_of_a_put_uses_queues(own_server):
    assert run(MIDST + SIGNALS + END, own_server.url) == "True\nTrue\n"


def test_a_finalizer_in_the_midst_of_a_put_uses_queues(own_server):
    assert run(MIDST + FINALIZERS + END, own_server.url) == "True\nTrue\n"


ENDS = """
import atexit, sys
def late():
    from pressure_mp import Queue
    q = Queue(0, sys.argv[2], url=sys.argv[1], buffering=4000)
    for item in range(3000): q.put(item)
if sys.argv[3] == "at exit": atexit.register(late)
import pressure_mp
if sys.argv[3] == "last": late()
pressure_mp.Queue(url=sys.argv[1]).put("and an anonymous one")
"""


@pytest.mark.parametrize("when", ["last", "at exit"])
def test_items_put_at_the_end_of_a_program_are_sent(make, own_server, name, when):
    q = make(name=name, buffering=0)
    assert run(ENDS, own_server.url, name, when) == ""
    assert q.qsize() == 3000


def test_where_no_thread_can_be_started_what_was_put_is_sent(make, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("can't start new thread")

    q = make()
    monkeypatch.setattr(threading, "_start_new_thread", refuse, raising=False)
    monkeypatch.setattr(threading, "_start_joinable_thread", refuse, raising=False)
    q.put("item")
    q.flush()
    assert q.get() == "item"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_items_put_before_a_process_is_started_come_before_the_items_it_puts(
    make, start, monkeypatch, method
):
    q, goes_on, send = used(make()), threading.Event(), BufferedPut.send
    q.put("first")  # which the caller sends
    monkeypatch.setattr(BufferedPut, "send", lambda *args: goes_on.wait(LIMIT) and send(*args))
    q.put("second")
    starting = Background(start, programs.put_one, q, "of the process", method=method)
    starting.join(0.1)
    assert starting.is_alive()
    goes_on.set()
    process, _ = starting.result()
    process.join()
    assert [q.get() for _ in range(3)] == ["first", "second", "of the process"]


def test_a_process_does_not_wait_for_a_full_queue(make, start):
    q = used(make())
    other = inside.copy(q)
    other.maxsize = 1
    other.close()
    q.put("there")
    q.put("waits for space")
    process, _ = start(programs.do_nothing)
    process.join()
    assert [q.get(), q.get()] == ["there", "waits for space"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_does_not_wait_for_a_broker_that_is_away(name, start, monkeypatch, method, sent):
    monkeypatch.setattr(unsent, "_PATIENCE", HOURS)
    server = Server("valkey", ("--appendonly", "yes")).start()
    try:
        q = used(Queue(name=name, url=server.url, buffering=9, reconnect=HOURS))
        server.process.send_signal(sent)
        q.put("while it is away")
        process, _ = start(programs.do_nothing, q, method=method)
        process.join()
        server.kill()
        server.start()
        assert q.get() == "while it is away"
        q.close()
    finally:
        server.stop()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_that_is_terminated_behind_map_loses_nothing(make, method):
    """Its workers are terminated as soon as they have returned: they put without a buffer."""
    results = used(make())
    pool = multiprocessing.get_context(method).Pool(2, programs.get_ready, (results,))
    with pool:
        pool.map(programs.put_results, range(4))
    assert results.qsize() == 4000


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_daemonic_process_puts_in_the_background(make, own_server, method):
    q = used(make())
    process = multiprocessing.get_context(method).Process(
        target=programs.put_all, args=(q, range(1000)), daemon=True
    )
    with own_server.client() as client:
        client.config_resetstat()
        process.start()
        process.join(LIMIT)
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] < 500
    assert [q.get() for _ in range(1000)] == list(range(1000))


@pytest.mark.parametrize("look", ["qsize", "empty", "get_nowait"])
def test_another_handle_of_the_process_sees_what_was_put(make, monkeypatch, look):
    q, goes_on, send = used(make()), threading.Event(), BufferedPut.send
    other = inside.copy(q)
    monkeypatch.setattr(BufferedPut, "send", lambda *args: goes_on.wait(LIMIT) and send(*args))
    q.put("item")
    looking = Background(getattr(other, look))
    looking.join(0.1)
    assert looking.is_alive()
    goes_on.set()
    assert looking.result() == {"qsize": 1, "empty": False, "get_nowait": "item"}[look]
    other.close()


def test_a_put_that_may_not_wait_for_space_waits_for_a_full_buffer(make, paused):
    """As for the broker: the queue itself is not full."""
    q = used(make(buffering=2))
    with paused():
        q.put(1)
        q.put(2)
        more = [Background(q.put_nowait, 3), Background(q.put, 4, timeout=0.01)]
        for each in more:
            each.join(0.1)
            assert each.is_alive()
    for each in more:
        each.result()
    assert sorted(q.get() for _ in range(4)) == [1, 2, 3, 4]


def test_items_that_wait_to_be_sent_take_a_bounded_amount_of_memory(make, paused):
    size, most = 200_000, 1 << 24
    q = used(make())
    with paused():
        putting = Background(lambda: [q.put(b"%6d" % item * (size // 6)) for item in range(120)])
        until(lambda: inside.unsent(q) >= most // (size + 100))
        putting.join(0.1)
        assert inside.unsent(q) <= most // size
    putting.result()
    assert [int(q.get()[:6]) for _ in range(120)] == list(range(120))
