"""Which puts are sent in the background where nothing is said, in which order, and who waits."""

from __future__ import annotations

import multiprocessing
import threading
from contextlib import contextmanager

import inside
import pytest
from programs import background_puts as programs
from waiting import HOURS, LIMIT, Background, until

from pressure_mp import (
    ArgumentError,
    ArgumentTypeError,
    JoinableQueue,
    LifoQueue,
    Queue,
    SimpleQueue,
)
from pressure_mp.buffering.outgoing import Outgoing

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
def test_what_the_environment_says_wrongly_is_refused(said, error, monkeypatch):
    monkeypatch.setenv("PRESSURE_BUFFERING", said)
    with pytest.raises(error, match="PRESSURE_BUFFERING"):
        Queue(url="memory://")


@pytest.mark.parametrize("wrong", [1.5, True, "5"])
def test_to_fetch_ahead_is_a_number_of_items(wrong):
    with pytest.raises(ArgumentTypeError, match="prefetch"):
        Queue(url="memory://", prefetch=wrong)


def test_what_a_process_puts_arrives_in_that_order_over_all_its_queues(make, start):
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


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_that_is_terminated_behind_map_loses_nothing(make, method):
    """Its workers are killed as soon as they have returned: they put without a buffer."""
    results = used(make())
    pool = multiprocessing.get_context(method).Pool(2, programs.get_ready, (results,))
    with pool:
        pool.map(programs.put_results, range(4))
    assert results.qsize() == 4000


@pytest.mark.parametrize("look", ["qsize", "empty", "get_nowait"])
def test_another_handle_of_the_process_sees_what_was_put(make, monkeypatch, look):
    q, goes_on, send = used(make()), threading.Event(), Outgoing.send
    other = inside.copy(q)
    monkeypatch.setattr(Outgoing, "send", lambda *args: goes_on.wait(LIMIT) and send(*args))
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


def test_what_waits_takes_a_bounded_amount_of_memory(make, paused):
    size, most = 200_000, 1 << 24
    q = used(make())
    with paused():
        putting = Background(lambda: [q.put(b"%6d" % item * (size // 6)) for item in range(120)])
        until(lambda: inside.unsent(q) >= most // (size + 100))
        putting.join(0.1)
        assert inside.unsent(q) <= most // size
    putting.result()
    assert [int(q.get()[:6]) for _ in range(120)] == list(range(120))
