"""An exception of a signal handler, wherever it comes, loses and doubles no item; nothing hangs."""

from __future__ import annotations

import contextlib
import gc
import select
import signal
import sys
import threading
import time
from functools import partial
from itertools import count

import inside
import pytest
import redis
from interrupting import Alarm, Interrupted
from waiting import HOURS, Background, lasting, until

from pressure_mp import (
    Empty,
    FairQueue,
    Full,
    JoinableQueue,
    LateTaskDoneWarning,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    TaskDoneError,
    TaskNotFound,
    TaskQueue,
)
from pressure_mp.buffering import pace, window
from pressure_mp.encoding.large import THRESHOLD
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.identity.processes import incarnation

#: An operation is made of coroutines, also for threads: one that was not begun says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    # Raised in a finalizer, an exception goes no further.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"
    ),
    # A socket may be left that was shut down and not closed, in the frames of the exception.
    pytest.mark.usefixtures("collected"),
]

#: Seconds until what was interrupted must have been put right.
SOON = 10.0
THREE = [1, 2, 3]


@pytest.fixture
def client(server):
    return redis.Redis(port=server.port)


def roles(client, name):
    """The keys that say that a client has a role, or was granted one."""
    parts = ("producer_granted", "producer_holder", "consumer_granted", "consumer_holder")
    return [part for part in parts if client.exists(f"__pressure__:{name}:mp:{part}")]


class Consumed:
    """Three items are in the queue before each call; afterwards all are got once, in order."""

    def __init__(self, queue, items=THREE, put=None):
        self.queue, self.items = queue, items
        self.put = put or (lambda: queue.put_many(items))

    def prepare(self):
        self.put()

    def rest(self, number):
        return [self.queue.get(timeout=SOON) for _ in range(number)]

    def check(self, interrupted, value):
        got = [] if interrupted else value if isinstance(value, list) else [value]
        assert got + self.rest(len(self.items) - len(got)) == self.items
        assert self.queue.qsize() == 0


ORDERED = {
    "fifo": lambda url, name: Queue(0, name, url=url),
    "lifo": lambda url, name: LifoQueue(0, name, url=url),
    "priority": lambda url, name: PriorityQueue(0, name, url=url),
    "eof": lambda url, name: Queue(0, name, url=url, eof="producers"),
    "signed": lambda url, name: Queue(0, name, url=url, authkey=b"key"),
}


@pytest.mark.parametrize("error", [Interrupted, Alarm])
@pytest.mark.parametrize("kind", ORDERED)
def test_get(server, name, sweep, kind, error):
    with ORDERED[kind](server.url, name) as q:
        items = THREE[::-1] if kind == "lifo" else THREE
        consumed = Consumed(q, items, lambda: q.put_many(THREE))
        sweep(q.get, consumed.check, prepare=consumed.prepare, error=error)
        stats = q.stats()
        assert (stats.length, stats.produced_messages) == (0, stats.consumed_messages)


def test_get_of_a_fair_queue(server, name, sweep):
    with FairQueue(key=lambda item: item[0], name=name, url=server.url) as q:
        items = [("a", 1), ("b", 2), ("a", 3)]
        consumed = Consumed(q, items, lambda: q.put_many([items[0], items[2], items[1]]))
        sweep(q.get, consumed.check, prepare=consumed.prepare)


@pytest.mark.parametrize("timeout", [5.0, 0.0])
def test_get_with_a_timeout(server, name, sweep, timeout):
    with Queue(3, name, url=server.url) as q:
        consumed = Consumed(q)
        sweep(lambda: q.get(timeout=timeout), consumed.check, prepare=consumed.prepare, every=3)


@pytest.mark.parametrize("kind", ["fifo", "lifo", "priority"])
def test_get_many(server, name, sweep, kind):
    with ORDERED[kind](server.url, name) as q:
        items = THREE[::-1] if kind == "lifo" else THREE
        consumed = Consumed(q, items, lambda: q.put_many(THREE))
        sweep(lambda: q.get_many(2), consumed.check, prepare=consumed.prepare, every=3)
        stats = q.stats()
        assert (stats.length, stats.produced_messages) == (0, stats.consumed_messages)


def test_get_many_of_a_fair_queue(server, name, sweep):
    """A key with a weight has several items in a round: its share stays used up."""
    with FairQueue(
        key=lambda item: item[0], weight={"a": 2, "b": 1}.get, name=name, url=server.url
    ) as q:
        items = [("a", 1), ("a", 2), ("b", 3), ("a", 4)]
        put = [items[0], items[1], items[3], items[2]]
        consumed = Consumed(q, items, lambda: q.put_many(put))
        sweep(lambda: q.get_many(3), consumed.check, prepare=consumed.prepare, every=2)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_get_of_a_large_item(server, name, sweep, kind):
    """Its content is beside the queue, and goes when it was got."""
    first, second = b"1" * THRESHOLD, b"2"
    with kind(0, name, url=server.url) as q:
        consumed = (Joined if kind is JoinableQueue else Consumed)(q, [first, second])
        sweep(q.get, consumed.check, prepare=consumed.prepare, every=11)
        sweep(lambda: q.get_many(2), consumed.check, prepare=consumed.prepare, every=13)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_get_of_a_large_item_with_buffering(server, name, sweep, kind):
    first, second = b"1" * THRESHOLD, b"2"
    producer = kind(0, name, url=server.url)
    with buffered(kind, server, name) as q:
        consumed = (Joined if kind is JoinableQueue else Consumed)(q, [first, second])
        consumed.put = lambda: producer.put_many([first, second])
        sweep(q.get, consumed.check, prepare=consumed.prepare, every=7)


def test_get_of_a_large_item_with_a_descriptor(server, name, sweep):
    first, second = b"1" * THRESHOLD, b"2"
    with Queue(0, name, url=server.url) as q:
        consumed = Consumed(q, [first, second])
        assert q.fileno()
        sweep(q.get, consumed.check, prepare=consumed.prepare, every=11)


def test_get_in_memory_may_lose_its_item(name, sweep):
    """In memory, a call and its reply are not one step: an item that was taken out stays out."""
    handles, lost = [], []

    def prepare():
        handles.append(Queue(0, f"{name}-{time.monotonic_ns()}", url="memory://"))
        handles[-1].put_many(THREE)

    def check(interrupted, value):
        q = handles.pop()
        rest = q.get_many(3)
        assert ([] if interrupted else [value]) + rest in (THREE, THREE[1:])
        lost.extend(THREE[: len(THREE) - len(rest)] if interrupted else ())

    sweep(lambda: handles[-1].get(), check, prepare=prepare)
    assert set(lost) == {1}


@pytest.mark.parametrize("timeout", [0.001, 0.0])
def test_a_get_that_waits_in_memory_leaves_no_place_in_line(name, sweep, timeout):
    q = Queue(0, name, url=f"memory://{name}")

    def get():
        with contextlib.suppress(Empty):
            q.get(timeout=timeout)

    def check(interrupted, value):
        gc.collect()
        q.put("next")
        assert q.get(timeout=SOON) == "next"
        side = q.why_blocked().get
        assert (side.holder, side.line) == (None, ())

    sweep(get, check, every=5)


def test_a_large_item_that_was_left_for_the_next_get_goes_with_its_handle(server, name, sweep):
    first, second = b"1" * THRESHOLD, b"2"
    handles, left = [], []
    # Notes on queues of this host, through which an interrupted first use had each later one look.
    noted = [Queue(url=server.url, buffering=0) for _ in range(25)]
    for one in noted:
        one.put(1)
        one.rejected()  # from here on it is at the broker
    with Queue(0, name, url=server.url) as other:

        def prepare():
            other.put_many([first, second])
            handles.append(Queue(0, name, url=server.url))

        def check(interrupted, value):
            handles.pop().close()
            got = [] if interrupted else [value]
            if interrupted and other.qsize() == 1:
                left.append(first)
                got = [first]
            assert got + [other.get() for _ in range(2 - len(got))] == [first, second]
            assert other.qsize() == 0

        sweep(lambda: handles[-1].get(), check, prepare=prepare, every=1)
    for one in noted:
        one.close()
    assert left


def test_get_of_the_protocol(server, name, sweep):
    with_it = PressureQueue(name, url=server.url)
    with_it.create()
    items = [b"1", b"2", b"3"]

    def check(interrupted, value):
        got = [] if interrupted else [value]
        assert got + [with_it.get(SOON) for _ in range(3 - len(got))] == items

    sweep(with_it.get, check, prepare=lambda: with_it.put_many(items), every=2)


def test_get_that_waits(server, client, name, sweep):
    """It holds the consumer role meanwhile; the item comes from another thread."""
    with Queue(0, name, url=server.url) as q, Queue(0, name, url=server.url) as other:
        other.put(0)
        other.get()
        putting = []

        def put():
            until(lambda: roles(client, name) or other.is_shutdown or time.monotonic() > end[0])
            other.put(1)

        end = [0.0]

        def prepare():
            end[0] = time.monotonic() + 0.3
            putting.append(Background(put))

        def check(interrupted, value):
            putting.pop().result()
            if interrupted:
                value = other.get(timeout=SOON)
            assert value == 1
            assert other.qsize() == 0
            assert roles(client, name) == []

        sweep(q.get, check, prepare=prepare, every=29)


def test_put(server, client, name, sweep):
    with Queue(0, name, url=server.url) as q:

        def check(interrupted, value):
            found = q.qsize()
            assert found in ([0, 1] if interrupted else [1])
            assert [q.get() for _ in range(found)] == [1] * found
            q.put(2, timeout=SOON)
            assert q.get(timeout=SOON) == 2
            assert roles(client, name) == []

        sweep(lambda: q.put(1), check)
        sweep(lambda: q.put(1, timeout=SOON), check, every=3)


def test_put_that_waits(server, client, name, sweep):
    with Queue(1, name, url=server.url) as q, Queue(1, name, url=server.url) as other:
        getting = []

        def get():
            until(lambda: roles(client, name) or time.monotonic() > end[0])
            assert other.get() == 0

        end = [0.0]

        def prepare():
            q.put(0)
            end[0] = time.monotonic() + 0.3
            getting.append(Background(get))

        def check(interrupted, value):
            getting.pop().result()
            found = other.qsize()
            assert found in ([0, 1] if interrupted else [1])
            assert [other.get() for _ in range(found)] == [1] * found
            assert roles(client, name) == []

        sweep(lambda: q.put(1), check, prepare=prepare, every=31)


def test_put_many(server, name, sweep):
    with Queue(0, name, url=server.url) as q:

        def check(interrupted, value):
            found = q.qsize()
            assert found in ([0, 3] if interrupted else [3])
            assert [q.get() for _ in range(found)] == THREE[:found]

        sweep(lambda: q.put_many(THREE), check, every=3)


class Joined(Consumed):
    def __init__(self, queue, items=THREE):
        super().__init__(queue, items)

    def check(self, interrupted, value):
        super().check(interrupted, value)
        for _ in self.items:
            self.queue.task_done()
        ended = Background(self.queue.join)
        ended.join(SOON)
        ended.result()
        stats = self.queue.stats()
        assert (stats.unfinished, stats.in_flight) == (0, 0)


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("error", [Interrupted, Alarm])
def test_get_of_a_joinable_queue(server, name, sweep, error, is_named):
    with JoinableQueue(0, name if is_named else None, url=server.url) as q:
        joined = Joined(q)
        sweep(q.get, joined.check, prepare=joined.prepare, every=5, error=error)


def test_get_many_of_a_joinable_queue(server, name, sweep):
    with JoinableQueue(0, name, url=server.url) as q:
        joined = Joined(q)
        sweep(lambda: q.get_many(2), joined.check, prepare=joined.prepare, every=7)


@pytest.mark.parametrize("is_named", [True, False])
def test_task_done(server, name, sweep, is_named):
    """Whether it was done is not known; to say it again counts once, and so does the next one."""
    with JoinableQueue(0, name if is_named else None, url=server.url) as q:

        def prepare():
            q.put_many(THREE)
            assert [q.get(), q.get()] == [1, 2]

        def check(interrupted, value):
            if interrupted:
                q.task_done()
            q.task_done()
            assert q.get(timeout=SOON) == 3
            q.task_done()
            q.join()
            assert q.stats().in_flight == 0
            with pytest.raises(TaskDoneError):
                q.task_done()

        sweep(q.task_done, check, prepare=prepare, every=2)


def do_unheard(queue, monkeypatch):
    """A task_done() that is interrupted when the broker did it."""
    run = queue._at.run_on

    def run_unheard(session, operation):
        run(session, operation)
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(queue._at, "run_on", run_unheard)
        with pytest.raises(Interrupted):
            queue.task_done()


def test_task_done_that_is_interrupted_behind_the_acknowledgement(server, monkeypatch):
    """At the next line, where Python 3.10 and trace functions let a signal handler raise."""
    with JoinableQueue(url=server.url) as q:
        q.put("item")
        q.get()
        acknowledge = q._at.acknowledge

        def acknowledged(asking):
            monkeypatch.undo()
            sys._getframe(2).f_trace = raise_at_the_next_line
            sys.settrace(lambda *told: None)
            return acknowledge(asking)

        def raise_at_the_next_line(frame, event, arg):
            if event == "line":
                sys.settrace(None)
                raise Interrupted
            return raise_at_the_next_line

        monkeypatch.setattr(type(q._at), "acknowledge", lambda at, asking: acknowledged(asking))
        with pytest.raises(Interrupted):
            q.task_done()
        q.task_done()  # to say it again counts once
        with pytest.raises(TaskDoneError):
            q.task_done()


def test_task_done_of_what_another_thread_got(server, name, monkeypatch):
    """It was interrupted, and is repeated by a thread that had items before and has none now."""
    with JoinableQueue(0, name, url=server.url) as q:
        q.put_many(THREE)
        assert q.get() == 1
        assert Background(q.get).result() == 2
        q.task_done()
        do_unheard(q, monkeypatch)
        q.task_done()
        assert (q.stats().unfinished, q.stats().in_flight) == (1, 0)


@pytest.mark.parametrize("buffering", [0, 10])
def test_task_done_that_was_interrupted_before(server, name, sweep, monkeypatch, buffering):
    """The broker did it, and its reply was not read; an interrupt comes while it is repeated."""
    producer = JoinableQueue(0, name, url=server.url)
    with JoinableQueue(0, name, url=server.url, buffering=buffering, prefetch=buffering) as q:

        def prepare():
            producer.put_many(THREE)
            assert [q.get(), q.get()] == [1, 2]
            do_unheard(q, monkeypatch)

        def check(interrupted, value):
            if interrupted:
                q.task_done()
            assert q.stats().unfinished == 2
            q.task_done()
            assert q.get(timeout=SOON) == 3
            q.task_done()
            assert q.stats().in_flight == 0
            with pytest.raises(TaskDoneError):
                q.task_done()

        sweep(q.task_done, check, prepare=prepare)


@pytest.mark.parametrize("kind", [JoinableQueue, TaskQueue])
def test_a_forward_that_is_interrupted_is_done_once_or_not_at_all(
    server, client, name, sweep, kind
):
    source, target = kind(name=name, url=server.url), Queue(1, f"{name}-target", url=server.url)
    taken = []

    def prepare():
        source.put("delivery")
        taken[:] = [source.take(0) if kind is TaskQueue else source.get(False)]

    def forward(item, **options):
        (taken[0] if kind is TaskQueue else source).forward(target, item, **options)

    def check(interrupted, value):
        found = target.qsize()
        assert found in ([0, 1] if interrupted else [1])
        if kind is TaskQueue:
            assert source.stats().counts["T"] == 1 - found
        else:
            assert source.unfinished_tasks == source.stats().in_flight == 1 - found
        if found:
            with pytest.raises((TaskNotFound, TaskDoneError, LateTaskDoneWarning)):
                forward("again", block=False)
        else:
            forward("item", timeout=SOON)
        assert target.get(timeout=SOON) == "item"
        assert roles(client, target.name) == []

    sweep(lambda: forward("item"), check, prepare=prepare, every=5)
    sweep(lambda: forward("item", timeout=SOON), check, prepare=prepare, every=7)


@pytest.mark.filterwarnings("ignore::pressure_mp.LateTaskDoneWarning")
def test_task_done_of_what_was_taken_away(server, name, sweep):
    """It counts nothing, also when it is repeated; the next one counts once."""
    with JoinableQueue(0, name, url=server.url) as q:
        operations, run, calls, taken = (
            q._at.here.operations,
            q._at.here.lease.run_now,
            count(1),
            [],
        )

        def prepare():
            q.put_many(THREE)
            assert q.get() == 1
            run(operations.requeue(incarnation()))
            (other,) = run(operations.take_many("another", next(calls), 0, 1, False, None))
            taken.append(other.seq)
            assert q.get() == 2

        def check(interrupted, value):
            if interrupted:
                q.task_done()
            assert q.stats().unfinished == 3
            q.task_done()
            assert run(operations.acknowledge("another", taken.pop())) is Outcome.DONE
            assert q.get(timeout=SOON) == 3
            q.task_done()
            assert (q.stats().unfinished, q.stats().in_flight) == (0, 0)

        sweep(q.task_done, check, prepare=prepare)


def buffered(kind, server, name):
    return kind(0, name, url=server.url, buffering=10, prefetch=10)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_get_with_buffering(server, name, sweep, kind):
    """The first get fetches the items; later gets hand out fetched items."""
    producer = kind(0, name, url=server.url)
    with buffered(kind, server, name) as q:
        consumed = (Joined if kind is JoinableQueue else Consumed)(q)
        consumed.put = lambda: producer.put_many(THREE)
        sweep(q.get, consumed.check, prepare=consumed.prepare, every=5)

        def prepare():
            producer.put_many([0, *THREE])
            assert q.get() == 0
            if kind is JoinableQueue:
                q.task_done()

        sweep(q.get, consumed.check, prepare=prepare)
        sweep(lambda: q.get_many(2), consumed.check, prepare=prepare)


def test_get_of_one_that_reads_ahead(server, sweep, monkeypatch):
    monkeypatch.setattr(pace.Pace, "next_number", lambda pace, handed: 10)
    monkeypatch.setattr(window, "KEPT", HOURS)
    with Queue(url=server.url) as q:
        consumed = Consumed(q)
        consumed.put = lambda: q.put_many(THREE)
        sweep(q.get, consumed.check, prepare=consumed.prepare, every=5)

        def prepare():
            q.put_many([0, *THREE])
            assert q.get() == 0

        sweep(q.get, consumed.check, prepare=prepare)
        sweep(lambda: q.get_many(2), consumed.check, prepare=prepare, every=5)

        def end_and_begin():
            consumed.prepare()
            inside.end_reservation(q)
            q._gets.reset()

        sweep(q.get, consumed.check, prepare=end_and_begin, every=5)
        sweep(lambda: inside.end_reservation(q), lambda *_: rest(q), prepare=prepare, every=5)


def test_get_of_one_that_asks_for_the_next_items_ahead(server, sweep, monkeypatch):
    monkeypatch.setattr(pace.Pace, "next_number", lambda pace, handed: 2)
    monkeypatch.setattr(pace, "_LEAST_AHEAD", 2)
    monkeypatch.setattr(window, "KEPT", HOURS)
    with Queue(url=server.url) as q:
        consumed = Consumed(q)
        consumed.put = lambda: q.put_many(THREE)

        def prepare(number):
            q.put_many([*range(number), *THREE])
            assert [q.get() for _ in range(number)] == list(range(number))

        sweep(
            q.get, consumed.check, prepare=lambda: prepare(1)
        )  # there is one, and more are asked for
        sweep(q.get, consumed.check, prepare=lambda: prepare(2))  # what was asked for is read
        sweep(
            lambda: inside.end_reservation(q),
            lambda *_: rest(q),
            prepare=lambda: prepare(2),
            every=5,
        )


def test_get_of_one_that_fetches_the_next_items_ahead(server, name, sweep, monkeypatch):
    monkeypatch.setattr(pace, "MOST_ITEMS", 2)
    producer = Queue(0, name, url=server.url)
    with Queue(0, name, url=server.url, prefetch=4) as q:
        consumed = Consumed(q)

        def prepare(number):
            producer.put_many([*range(number), *THREE])
            assert [q.get() for _ in range(number)] == list(range(number))

        for number in range(3):  # it asks for the next; hands out the last; hears the reply
            sweep(q.get, consumed.check, prepare=partial(prepare, number), every=3)
        sweep(q.qsize, lambda *_: rest(q), prepare=partial(prepare, 1), every=3)


def rest(q):
    assert [q.get() for _ in THREE] == list(THREE)


@pytest.mark.parametrize("buffering", [0, 10])
@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_get_of_a_queue_with_a_descriptor(server, name, sweep, kind, buffering):
    producer = kind(0, name, url=server.url)
    with kind(0, name, url=server.url, buffering=buffering, prefetch=buffering) as q:
        consumed = (Joined if kind is JoinableQueue else Consumed)(q)
        consumed.put = lambda: producer.put_many(THREE)
        shown = select.poll()
        shown.register(q.fileno(), select.POLLIN)

        def check(interrupted, value):
            if interrupted:
                assert shown.poll(SOON * 1000)
            consumed.check(interrupted, value)
            assert not shown.poll(0)

        sweep(q.get, check, prepare=consumed.prepare, every=11)
        sweep(lambda: q.get_many(2), check, prepare=consumed.prepare, every=13)


def test_put_with_buffering(server, name, sweep):
    consumer = Queue(0, name, url=server.url)
    with buffered(Queue, server, name) as q:

        def check(interrupted, value):
            flushed = Background(q.flush)
            flushed.join(SOON)
            flushed.result()
            found = consumer.qsize()
            assert found in ([0, 1] if interrupted else [1])
            assert [consumer.get() for _ in range(found)] == [1] * found

        sweep(lambda: q.put(1), check)
        sweep(lambda: (q.put(1), q.flush()), check, every=3)


def test_put_into_a_queue_with_a_bound(server, sweep):
    with Queue(50, url=server.url) as q:

        def check(interrupted, value):
            found = q.qsize()
            assert found in ([0, 1, 2] if interrupted else [2])
            assert [q.get() for _ in range(found)] == [1, 2][:found]

        sweep(lambda: (q.put(1), q.put(2)), check, every=3)
        for item in range(50):
            q.put_nowait(item)
        with pytest.raises(Full):
            q.put_nowait("more")
        assert [q.get() for _ in range(50)] == list(range(50))


def test_the_first_put_with_buffering_and_its_thread(server, name, sweep):
    consumer = Queue(0, name, url=server.url)
    handles = []

    def prepare():
        handles.append(buffered(Queue, server, name))

    def check(interrupted, value):
        q = handles.pop()
        q.put(2)
        closing = Background(q.close)
        closing.join(SOON)
        closing.result()
        got = consumer.get_many(2)
        assert got in ([[2], [1, 2]] if interrupted else [[1, 2]])

    sweep(lambda: handles[-1].put(1), check, prepare=prepare, every=11)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_an_anonymous_queue_from_its_begin_to_its_end(server, client, name, sweep, kind):
    """An interrupt leaves no key of it, also while the process goes on."""
    options = {"url": server.url, "prefix": name, "authkey": b"key"}
    with kind(0, "first", **options):  # what a process keeps once for each broker is not counted
        pass
    before = {*lasting(client, f"{name}*")}

    def use():
        with kind(**options) as q:
            q.put(1)

    def check(interrupted, value):
        if not interrupted:
            assert {*lasting(client, f"{name}*")} <= before
        gc.collect()  # a handle may be in a cycle with the frames that the exception went through
        until(lambda: {*lasting(client, f"{name}*")} <= before, SOON)

    sweep(use, check, every=37)


def test_attach_and_first_use(server, name, sweep):
    Queue(0, name, url=server.url).put(0)
    used = Queue.attach(name, url=server.url)

    def use():
        with Queue.attach(name, url=server.url) as q:
            q.put(1)

    def check(interrupted, value):
        use()
        got = used.get_many(10)
        assert got[:1] == [0]
        assert len(got) in (2, 3)
        used.put(0)

    sweep(use, check, every=29)


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_close_of_a_handle(server, name, sweep, kind):
    """What it had fetched goes back, what it had put is sent; or when called again."""
    other = kind(0, name, url=server.url)
    handles = []

    def prepare():
        other.put_many([0, *THREE])
        q = buffered(kind, server, name)
        assert q.get() == 0
        q.put(4)
        handles.append(q)

    def check(interrupted, value):
        q = handles.pop()
        closing = Background(q.close)
        closing.join(SOON)
        closing.result()
        assert [other.get(timeout=SOON) for _ in range(4)] == [*THREE, 4]
        assert other.qsize() == 0
        if kind is JoinableQueue:
            for _ in range(5):
                other.task_done()
            other.join()
        assert other.stats().in_flight == 0

    sweep(lambda: handles[-1].close(), check, prepare=prepare, every=31)


def is_worker(thread):
    """Whether it is one of a pool; a thread whose start was interrupted may have no ident."""
    return thread.name.endswith(" worker") and thread.ident is not None


@pytest.mark.parametrize("disposition", [signal.default_int_handler, signal.SIG_IGN])
def test_run_of_a_worker_pool(server, name, sweep, disposition, request):
    """A handler of another signal raises in the thread that waits for the pool: the tasks in hand
    are finished, the others stay."""
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, disposition)
    q = TaskQueue(name, url=server.url)

    def prepare():
        q.put("task")

    def check(interrupted, value):
        until(lambda: not q.stats().words.get("taken"))
        try:
            task = q.take(0)
        except Empty:
            pass
        else:
            assert task.data == "task"
            task.ack()
        until(lambda: not [one for one in threading.enumerate() if is_worker(one)])
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) == disposition

    def run():
        stop = threading.Event()

        def handle(task):
            stop.set()

        q.run(handle, stop=stop)

    sweep(run, check, prepare=prepare, every=23)


def test_take_of_a_task_queue(server, name, sweep):
    q = TaskQueue(name, url=server.url)

    def prepare():
        q.put("task")

    def check(interrupted, value):
        task = q.take(SOON) if interrupted else value
        assert task.data == "task"
        task.ack()
        with pytest.raises(Empty):
            q.take(0)

    sweep(q.take, check, prepare=prepare, every=5)
    sweep(lambda: q.take(SOON), check, prepare=prepare, every=7)


def test_ack_of_a_task_and_the_next_one(server, name, sweep):
    q = TaskQueue(name, url=server.url)
    taken = []

    def prepare():
        q.put("first")
        taken[:] = [q.take()]
        q.put("second")

    def check(interrupted, value):
        if interrupted:
            try:
                q.ack(taken[0].id)
            except Exception:  # it is done
                pass
        task = q.take(SOON) if interrupted else value
        assert task.data == "second"
        task.ack()
        with pytest.raises(Empty):
            q.take(0)

    sweep(lambda: q.take(ack=taken[0]), check, prepare=prepare, every=5)


def test_put_of_a_task(server, name, sweep):
    q = TaskQueue(name, url=server.url)

    def check(interrupted, value):
        try:
            task = q.take(0)
        except Empty:
            assert interrupted
        else:
            task.ack()

    sweep(lambda: q.put("task"), check, every=3)


def test_put_of_a_task_that_waits(server, name, sweep):
    q, other = [TaskQueue(name, url=server.url, maxsize=1) for _ in range(2)]
    taking = []

    def take():
        until(lambda: other.stats().putting or time.monotonic() > end[0])
        other.take().ack()

    end = [0.0]

    def prepare():
        q.put("before")
        end[0] = time.monotonic() + 0.3
        taking.append(Background(take))

    def check(interrupted, value):
        taking.pop().result()
        found = other.take_many(5, timeout=0) if other.qsize() else []
        assert [task.data for task in found] in ([[], ["task"]] if interrupted else [["task"]])
        other.ack_many(found)
        assert other.stats().putting == 0

    sweep(lambda: q.put("task"), check, prepare=prepare, every=31)
