"""The only reader of a queue without a bound reads its next items by a plain command, and the
script behind that says whether they count."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import threading
from contextlib import suppress
from functools import partial

import inside
import pytest
from brokers.lossy import LossyProxy
from oracle.delivery_clients import alone, end_alone, ended
from programs import reserving as programs
from waiting import LIMIT, Background, until

from pressure_mp import Empty, PressureQueue, Queue
from pressure_mp.drivers import drive
from pressure_mp.engines.contract.items import EndPrefetch, Prefetch
from pressure_mp.operations.deliveries import DeliveryOperations

READER, OTHER = "someone:reader-1", "other#1"


@pytest.fixture
def proxy(own_server):
    proxy = LossyProxy(own_server.port)
    yield proxy
    proxy.stop()


class Reading:
    """A queue that a reader has some items of, whose connections go through a proxy."""

    names = map("reading-{}".format, itertools.count())

    def __init__(self, url, client, number=30):
        self.client = client
        self.operations = DeliveryOperations(next(self.names), "fifo")
        self.queue = PressureQueue(self.operations.name, url=url)
        self.key = f"__pressure__:{self.queue.name}"
        self.queue.create()
        # Two are out, and may go back to the front.
        self.queue.put_many([b"%d" % item * (item % 7 + 1) for item in range(number + 2)])
        self.run(self.operations.prefetch(Prefetch(OTHER, 1, 0, 0, 2)))
        self.call, self.handed, self.here = 0, 0, []

    def run(self, operation):
        session = inside.bind(self.queue).session()
        try:
            return drive(operation, session)
        finally:
            session.end()

    def ask(self, number, kept, is_known=True):
        """The reply, when all but so many that are here were handed out."""
        out = self.here[: len(self.here) - kept]
        known = (len(out), sum(map(len, out))) if is_known else (0, 0)
        self.call, self.handed = self.call + 1, self.handed + len(out)
        asking = (READER, self.call, self.handed, kept, number, False, True, *known)
        reply = self.run(self.operations.prefetch(Prefetch(*asking)))
        self.here = self.here[len(out) :] + getattr(reply, "items", [])
        return reply

    def end(self, out=0):
        self.run(ended(end_alone(READER, self.call, self.handed + out)))

    @property
    def state(self):
        """The queued items, the counts, and what the server knows of the reader."""
        kept = f"{self.key}:mp:consumer_holder"
        return (
            self.client.lrange(self.key, 0, -1),
            self.client.mget(f"{self.key}:stats:consumed_{of}" for of in ("messages", "bytes")),
            self.client.hmget(kept, "ticket", "call", "handed", "looked", "front"),
            self.client.hget(f"{self.key}:mp:readers", READER),
        )


def nothing(reading, kept):
    pass


def put(reading, kept):
    reading.client.lpush(reading.key, b"one more")


def put_back(reading, kept):
    reading.run(ended(EndPrefetch(OTHER, 1, 0)))


def look(reading, kept):
    assert reading.client.hset(f"{reading.key}:mp:consumer_holder", "looked", "1")


def renew(reading, kept):
    asking = (READER, 2, 8 - kept, kept, 0)
    reading.run(reading.operations.prefetch(alone(*asking)))


def end(reading, kept):
    reading.run(ended(end_alone(READER, 1, 8 - kept)))


def end_and_take(reading, kept):
    end(reading, kept)
    with suppress(Empty):
        reading.run(reading.operations.get(False, None))


def bound(reading, kept):
    reading.client.set(f"{reading.key}:bound", 9)


def store(reading, kept):
    """The content of one of the next items is in chunks."""
    reading.client.zadd(f"{reading.key}:mp:uploads", {"0" * 24: "inf"})
    if reading.client.llen(reading.key) > 11:
        reading.client.lset(reading.key, -11, b"\xfamp1" + b"0" * 40)


def wait(reading, kept):
    reading.client.hset(f"{reading.key}:mp:waiting", "a ticket", "consumer 1 1 9000000000000 me")


def free(reading, kept):
    reading.client.lpush(f"{reading.key}:consumer_free", "1")


def adopt(reading, kept):
    reading.client.persist(f"{reading.key}:stats:consumed_bytes")


EVENTS = (nothing, put, put_back, look, renew, end, end_and_take, bound, store, wait, free, adopt)


@pytest.mark.parametrize("kept", [0, 3, 8])
@pytest.mark.parametrize("number", [8, 30])
@pytest.mark.parametrize("is_between", [False, True])
def test_a_plain_read_has_the_same_reply_and_state_as_a_read_by_the_script(
    own_server, proxy, client_of, kept, number, is_between
):
    """Whatever other clients do before it, or between the plain command and the script."""
    for event in EVENTS:
        compare(own_server, proxy, client_of, event, kept, number, is_between)


def compare(own_server, proxy, client_of, event, kept, number, is_between):
    plain, whole = (Reading(proxy.url, client_of, number) for _ in range(2))
    replies = []
    for reading in (whole, plain):
        assert len(reading.ask(8, 0).items) == 8
        direct = Reading.__new__(Reading)
        direct.__dict__ |= reading.__dict__
        direct.queue = PressureQueue(reading.queue.name, url=own_server.url)
        happen = partial(event, direct, kept)
        if reading is plain and is_between and kept < 8:
            seen = []
            proxy.in_between = lambda happen=happen, seen=seen: seen or (seen.append(1), happen())
            replies.append(reading.ask(6, kept))
            proxy.in_between = None
            assert seen
        else:
            happen()
            replies.append(reading.ask(6, kept, is_known=reading is plain))
    assert replies[1] == replies[0]
    assert plain.state == whole.state
    for reading in (whole, plain):
        reading.ask(6, len(reading.here) // 2, is_known=reading is plain)
        reading.end(len(reading.here) // 2)
    assert plain.state == whole.state


@pytest.fixture
def client_of(own_server):
    with own_server.client() as client:
        yield client


def test_items_come_from_no_script_while_one_reads_on(own_server, proxy, client_of):
    reading = Reading(proxy.url, client_of, 1000)
    found = reading.ask(8, 0).items + reading.ask(8, 0).items  # the server has the script then
    proxy.requests = bytearray()
    found += reading.ask(142, 3).items
    assert proxy.requests.count(b"LRANGE") == proxy.requests.count(b"EVALSHA") == 1
    expected = [b"%d" % item * (item % 7 + 1) for item in range(2, 160)]
    assert found == expected


def test_no_more_is_read_than_about_a_megabyte(own_server, proxy, client_of):
    reading = Reading(proxy.url, client_of, 0)
    reading.queue.put_many([bytes(10_000)] * 500)
    reading.ask(2, 0)
    assert 90 <= len(reading.ask(1000, 0).items) <= 100


@pytest.mark.parametrize("seed", range(5))
def test_items_that_are_read_are_in_order_and_counted(own_server, proxy, client_of, seed):
    draw = random.Random(seed)
    reading = Reading(proxy.url, client_of, 400)
    queued = reading.state[0][::-1]
    got = []
    while True:
        kept = draw.choice([0, 0, draw.randrange(len(reading.here) + 1)])
        got += reading.here[: len(reading.here) - kept]
        if draw.random() < 0.2:
            proxy.lose()
        before = list(reading.here)
        reading.ask(draw.randrange(1, 40), kept, is_known=draw.random() < 0.8)
        assert reading.here[:kept] == before[len(before) - kept :]
        if not reading.here:
            break
    assert got == queued
    left, (messages, size), _, _ = reading.state
    assert (left, int(messages), int(size) - 3) == ([], 402, sum(map(len, queued)))


def test_a_queue_over_connections_that_break_loses_nothing(own_server, proxy):
    q = Queue(url=proxy.url)
    done = threading.Event()
    trouble = Background(proxy.trouble, done)
    putting = Background(lambda: [q.put(item) for item in range(20_000)])
    try:
        assert [q.get(timeout=60) for _ in range(20_000)] == list(range(20_000))
    finally:
        done.set()
    putting.result()
    trouble.result()
    q.close()


MANY = 20_000


def stop_at(when, proxy, client, q, process, how):
    """Send it a signal while it reads on: before the script is there, or before its reply comes, or
    when that has come. What comes for it waits until then."""
    happened = threading.Event()

    def in_between():
        proxy.in_between = None
        if when == "before the reply":
            proxy.passing.clear()
        elif when == "before the script":
            os.kill(process.pid, how)
        happened.set()

    def last_call():
        return client.hget(f"__pressure__:{q.name}:mp:consumer_holder", "call")

    before = last_call()
    proxy.in_between = in_between
    assert happened.wait(LIMIT)
    if when == "before the reply":
        until(lambda: last_call() != before)
    if when != "before the script":
        os.kill(process.pid, how)
    proxy.passing.set()


@pytest.mark.parametrize("when", ["before the script", "before the reply", "after the reply"])
def test_a_reader_that_is_killed_loses_what_it_was_handed_and_no_more(
    own_server, proxy, client_of, start, when
):
    q = Queue(url=proxy.url)
    q.put_many(range(MANY))
    q.flush()
    last = multiprocessing.get_context("spawn").Value("q", -1, lock=False)
    process, pipe = start(programs.get_all, q, MANY, last, method="spawn")
    assert pipe.recv() == "begins"
    stop_at(when, proxy, client_of, q, process, signal.SIGKILL)
    process.join()
    first = q.get(timeout=LIMIT)
    assert first - last.value in (1, 2)  # it may have been killed before it noted the last one
    left = [*q.get_many(MANY, timeout=LIMIT)]
    while len(left) < MANY - first - 1:
        left += q.get_many(MANY, timeout=LIMIT)
    assert left == list(range(first + 1, MANY))
    q.close()


@pytest.mark.parametrize("when", ["before the script", "before the reply", "after the reply"])
def test_a_reader_that_is_stopped_hands_out_nothing_that_others_got(
    own_server, proxy, client_of, start, when
):
    q = Queue(url=proxy.url, lease=1)
    q.put_many(range(MANY))
    q.put(None)
    q.flush()
    process, pipe = start(programs.get_until_none, q, method="spawn")
    assert pipe.recv() == "begins"
    stop_at(when, proxy, client_of, q, process, signal.SIGSTOP)
    got = [q.get(timeout=LIMIT) for _ in range(500)]
    os.kill(process.pid, signal.SIGCONT)
    theirs = pipe.recv()
    process.join()
    assert sorted(got + theirs) == list(range(MANY))
    assert theirs == sorted(theirs)
    assert got == sorted(got)
    q.close()
