"""Our client and step-by-step other implementations share queues."""

from __future__ import annotations

import asyncio
import collections
import ctypes
import multiprocessing
import subprocess
import sys
import threading

import inside
import pytest
import stepwise
from stepwise import Stop
from waiting import LIMIT, Background, blocked, until, waiters

from pressure_mp import (
    Empty,
    Full,
    PressureQueue,
    QueueClosedError,
    QueueDoesNotExistError,
    QueueInUseError,
    WrongKeyTypeError,
)
from pressure_mp.drivers import adrive
from pressure_mp.engines.redis.session import RedisSession

#: A role is free for both.
FREE = (1, 1)

# Items, from one to the other.


def test_another_implementation_gets_the_items_that_ours_puts(ours, theirs, tokens):
    ours.create(3)
    other = theirs()
    for item in (b"one", b"", b"\x00\xff\r\n"):
        ours.put(item)
    assert [other.get(), other.get(), other.get_nowait()] == [b"one", b"", b"\x00\xff\r\n"]
    assert other.length() == 0
    assert tokens() == FREE


def test_ours_gets_the_items_that_another_implementation_puts(ours, theirs, tokens):
    other = theirs()
    other.create(3)
    other.put(b"one")
    other.put(b"")
    other.put_nowait(b"\x00\xff\r\n")
    assert [ours.get(), ours.get_nowait(), ours.get(timeout=1)] == [b"one", b"", b"\x00\xff\r\n"]
    assert ours.length() == 0
    assert tokens() == FREE


def test_both_count_in_the_same_statistics(ours, theirs):
    other = theirs()
    ours.create()
    ours.put(b"abc")
    other.put(b"de")
    seen = ours.stats()
    assert (seen.produced_messages, seen.produced_bytes) == (2, 5)
    assert (seen.producer, seen.consumer) == ("stepwise", None)
    other.get()
    assert ours.get() == b"de"
    seen = ours.stats()
    assert (seen.consumed_messages, seen.consumed_bytes) == (2, 5)
    assert seen.consumer == ours.client_id


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_a_request_and_its_answer_travel_in_both_directions_at_once(server, name, bound):
    """Two queues: ours asks, theirs answers."""
    asked, answered = (PressureQueue(f"{name}-{way}", url=server.url) for way in ("ask", "answer"))
    for q in (asked, answered):
        q.create(bound)
    reading, writing = (stepwise.StepwiseClient(server.port, q.name) for q in (asked, answered))

    def answer():
        for _ in range(100):
            writing.put(reading.get() + b"!")

    def ask():
        for number in range(100):
            asked.put(b"%d" % number)

    try:
        tasks = [Background(answer), Background(ask)]
        assert [answered.get(timeout=20) for _ in range(100)] == [b"%d!" % n for n in range(100)]
        for task in tasks:
            task.result()
    finally:
        reading.abort()
        writing.abort()


def test_both_put_and_both_get_on_one_queue(ours, theirs, tokens):
    ours.create(2)
    producer, consumer = theirs(), theirs()
    got = collections.Counter()
    tasks = [
        Background(lambda: [ours.put(b"ours %d" % n) for n in range(100)]),
        Background(lambda: [producer.put(b"theirs %d" % n) for n in range(100)]),
        Background(lambda: got.update([ours.get() for _ in range(100)])),
        Background(lambda: got.update([consumer.get() for _ in range(100)])),
    ]
    for task in tasks:
        task.result()
    assert got == {b"%s %d" % (side, n): 1 for side in (b"ours", b"theirs") for n in range(100)}
    assert tokens() == FREE


def test_theirs_joins_while_many_of_ours_put_and_get(ours, theirs, tokens):
    """Ours pass each other, so that both roles are seldom free."""
    ours.create(8)
    number, late = 150, 30
    producer, consumer = theirs(), theirs()
    half_way = threading.Event()
    got = collections.defaultdict(list)

    def put(thread):
        for count in range(number):
            ours.put(b"%d %d" % (thread, count))

    def get(thread):
        for count in range(number):
            got[thread].append(ours.get())
            if count == number // 2:
                half_way.set()

    tasks = [Background(call, thread) for thread in range(4) for call in (put, get)]
    assert half_way.wait(LIMIT)
    tasks += [
        Background(lambda: [producer.put(b"4 %d" % count) for count in range(late)]),
        Background(lambda: got[4].extend(consumer.get() for _ in range(late))),
    ]
    for task in tasks:
        task.result()
    items = [tuple(map(int, item.split())) for found in got.values() for item in found]
    assert sorted(items) == [
        *((thread, count) for thread in range(4) for count in range(number)),
        *((4, count) for count in range(late)),
    ]
    for found in got.values():
        for one in range(5):
            counts = [int(item.split()[1]) for item in found if item.startswith(b"%d " % one)]
            assert counts == sorted(counts)
    assert tokens() == FREE


# Waiting, and being woken.


@pytest.mark.usefixtures("no_ticks")
def test_our_waiting_get_wakes_when_theirs_puts(ours, theirs, parked):
    ours.create()
    other = theirs()

    getting = Background(ours.get)
    parked()
    other.put(b"x")
    assert getting.result() == b"x"


@pytest.mark.usefixtures("no_ticks")
def test_our_waiting_put_wakes_when_theirs_gets(ours, theirs, parked):
    ours.create(1)
    other = theirs()
    ours.put(b"x")

    putting = Background(ours.put, b"x")
    parked()
    assert other.get() == b"x"
    putting.result()


def test_their_blocked_get_wakes_when_ours_puts(ours, theirs, parked):
    ours.create()
    other = theirs()

    getting = Background(other.get)
    parked()
    ours.put(b"x")
    assert getting.result() == b"x"


def test_their_blocked_put_wakes_when_ours_gets(ours, theirs, parked):
    ours.create(1)
    other = theirs()
    ours.put(b"x")

    putting = Background(other.put, b"x")
    parked()
    assert ours.get() == b"x"
    putting.result()


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_ours_waits_in_line_for_a_role_that_theirs_has_and_wakes_when_it_is_given_back(
    ours, theirs, parked, role
):
    ours.create()
    ours.put(b"x")
    other = theirs()
    call = {"producer": lambda: ours.put(b"y"), "consumer": ours.get}[role]

    other.take(role)
    waiting = Background(call)
    parked()
    other.give_back(role)
    waiting.result()
    if role == "consumer":
        ours.put(b"x")


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_theirs_waits_for_a_role_that_ours_has_and_gets_it_next(ours, theirs, parked, role):
    ours.create(1)
    other = theirs()
    if role == "producer":
        ours.put(b"first")
        first = Background(ours.put, b"second")
        parked(1)
        second = Background(other.put, b"third")
    else:
        first = Background(ours.get)
        parked(1)
        second = Background(other.get)
    parked(2)
    if role == "producer":
        assert [ours.get() for _ in range(3)] == [b"first", b"second", b"third"]
        first.result()
        second.result()
    else:
        ours.put(b"first")
        ours.put(b"second")
        assert (first.result(), second.result()) == (b"first", b"second")


def test_the_line_for_a_role_is_first_come_first_served_whoever_stands_in_it(
    ours, theirs, parked, tokens
):
    ours.create()
    holder = theirs()
    holder.take("producer")
    others = [theirs() for _ in range(2)]
    line = []
    for number, put in enumerate([ours.put, others[0].put, ours.put, others[1].put, ours.put]):
        line.append(Background(put, b"%d" % number))
        parked(number + 1)
    holder.give_back("producer")
    assert [ours.get() for _ in line] == [b"0", b"1", b"2", b"3", b"4"]
    for putting in line:
        putting.result()
    assert tokens() == FREE


@pytest.mark.parametrize("step", range(12))
@pytest.mark.parametrize("operation", ["put", "put_nowait", "get", "get_nowait", "close"])
def test_ours_may_come_between_any_two_steps_of_theirs(
    ours, theirs, client, tokens, operation, step
):
    """Whatever ours does at that moment is done wholly or refused, and nothing goes wrong later."""
    ours.create(2)
    ours.put(b"before")
    stop = Stop(step)
    other = theirs(before=stop)
    put, got = [b"before"], []
    if "put" in operation:
        working = Background(getattr(other, operation), b"theirs")
    else:
        working = Background(getattr(other, operation))
    until(lambda: stop.reached.is_set() or not working.is_alive())

    for item in (b"a", b"b", b"c"):
        try:
            ours.put_nowait(item)
            put.append(item)
        except (Full, QueueClosedError):
            pass
        assert ours.length() <= 2
    for _ in range(2):
        try:
            got.append(ours.get_nowait())
        except (Empty, QueueClosedError):
            pass
    try:
        ours.put_nowait(b"d")
        put.append(b"d")
    except (Full, QueueClosedError):
        pass
    stop.go_on()

    if operation == "get":  # it may have found the queue empty by now
        until(lambda: not working.is_alive() or other.is_blocked(client))
        if working.is_alive():
            ours.put(b"e")
            put.append(b"e")
    try:
        result = working.result()
        if "get" in operation:
            got.append(result)
        elif "put" in operation:
            put.append(b"theirs")
    except (stepwise.IsFull, stepwise.IsEmpty, stepwise.InUse):
        pass

    assert tokens() == FREE
    while ours.length():
        got.append(ours.get())
    assert sorted(got) == sorted(put)
    assert ours.closed() == (operation == "close")
    if operation != "close":
        ours.put_nowait(b"1")
        ours.put_nowait(b"2")
        with pytest.raises(Full):
            ours.put_nowait(b"3")


# The bound.


def test_a_sign_of_room_that_theirs_leaves_on_a_full_queue_does_not_mislead_ours(ours, theirs):
    """Theirs takes an item and says only later that there is room; ours has filled it by then."""
    ours.create(2)
    ours.put(b"1")
    stop = Stop("LPUSH :not_full")
    other = theirs(faithful=True, before=stop)
    getting = Background(other.get)
    assert stop.reached.wait(LIMIT)
    ours.put(b"2")
    ours.put(b"3")
    stop.go_on()
    assert getting.result() == b"1"
    assert other.length() == 2
    for put in (ours.put_nowait, lambda item: ours.put(item, timeout=0.05)):
        with pytest.raises(Full):
            put(b"4")
    assert [ours.get(), ours.get()] == [b"2", b"3"]


def test_a_queue_that_theirs_over_filled_is_drained_before_ours_may_put(
    ours, theirs, parked, protocol_keys
):
    other = theirs()
    other.create(1)
    for item in (b"1", b"2", b"3"):
        other.overfill(item)
    assert ours.stats().length == 3
    putting = Background(ours.put, b"4")
    parked()
    faithful = theirs(faithful=True)  # says after every get that the queue is not full
    for item in (b"1", b"2"):
        assert faithful.get() == item
        with pytest.raises(Full):
            ours.put_nowait(b"5")
        assert putting.is_alive()
    assert faithful.get() == b"3"
    putting.result()
    assert ours.get() == b"4"
    assert protocol_keys()[":not_full"] == ("list", 1)
    ours.put_nowait(b"6")
    with pytest.raises(stepwise.IsFull):
        other.put_nowait(b"7")


def test_a_queue_that_ours_over_filled_is_drained_by_theirs_and_then_used_by_both(ours, theirs):
    ours.create(2)
    for number in range(5):
        ours.put(b"%d" % number, overfill=True)
    other = theirs()
    with pytest.raises(stepwise.IsFull):
        other.put_nowait(b"no")
    assert [other.get() for _ in range(5)] == [b"%d" % number for number in range(5)]
    ours.put_nowait(b"a")
    other.put_nowait(b"b")
    with pytest.raises(Full):
        ours.put_nowait(b"c")
    with pytest.raises(stepwise.IsFull):
        other.put_nowait(b"c")
    assert [ours.get(), other.get()] == [b"a", b"b"]


# Closing.


def test_ours_closes_and_their_blocked_get_ends_at_once(ours, theirs, parked, tokens):
    ours.create()
    other = theirs()
    getting = Background(other.get)
    parked()
    ours.close()
    with pytest.raises(stepwise.Closed):
        getting.result()
    with pytest.raises(QueueClosedError):
        ours.get()
    assert tokens() == FREE


def test_theirs_closes_and_our_waiting_get_ends_within_about_a_second(ours, theirs, parked, tokens):
    ours.create()
    getting = Background(ours.get)
    parked()
    theirs().close()
    with pytest.raises(QueueClosedError):
        getting.result()
    assert tokens() == FREE


def test_theirs_closes_and_ours_that_wait_in_line_end_within_about_a_second(
    ours, theirs, parked, tokens
):
    ours.create()
    getting = [Background(ours.get) for _ in range(4)]
    parked(4)
    theirs().close()
    for get in getting:
        with pytest.raises(QueueClosedError):
            get.result()
    assert tokens() == FREE


@pytest.mark.usefixtures("no_ticks")
def test_ours_closes_and_all_that_wait_for_an_item_end_at_once(
    server, name, ours, theirs, parked, tokens
):
    ours.create()
    getting = [Background(ours.get)]
    parked()
    other = theirs()
    in_line = Background(other.get)
    parked(2)
    getting += [Background(ours.get) for _ in range(3)]
    parked(5)
    PressureQueue(name, url=server.url).close()
    for get in getting:
        with pytest.raises(QueueClosedError):
            get.result()
    with pytest.raises(stepwise.Closed):
        in_line.result()
    assert tokens() == FREE


@pytest.mark.usefixtures("no_ticks")
def test_ours_closes_and_all_that_wait_for_space_end_at_once(ours, theirs, parked, tokens):
    ours.create(1)
    ours.put(b"last")
    putting = [Background(ours.put, b"never")]
    parked()
    in_line = Background(theirs().put, b"never")
    parked(2)
    putting += [Background(ours.put, b"never") for _ in range(3)]
    parked(5)
    ours.close()
    for put in putting:
        with pytest.raises(QueueClosedError):
            put.result()
    with pytest.raises(stepwise.Closed):
        in_line.result()
    assert tokens() == FREE
    assert ours.get() == b"last"


def test_a_close_of_ours_waits_until_their_blocked_put_is_done(ours, theirs, parked, tokens):
    ours.create(1)
    ours.put(b"1")
    putting = Background(theirs().put, b"2")
    parked()
    with pytest.raises(QueueInUseError):
        ours.close_nowait()
    closing = Background(ours.close)
    parked(2)
    assert not ours.closed()
    assert ours.get() == b"1"
    putting.result()
    closing.result()
    assert ours.get() == b"2"
    with pytest.raises(QueueClosedError):
        ours.get()
    assert tokens() == FREE


def test_a_close_of_theirs_waits_until_our_waiting_put_is_done(ours, theirs, parked, tokens):
    ours.create(1)
    ours.put(b"1")
    putting = Background(ours.put, b"2")
    parked()
    other = theirs()
    closing = Background(other.close)
    parked(2)
    assert ours.get() == b"1"
    putting.result()
    closing.result()
    assert ours.get() == b"2"
    with pytest.raises(QueueClosedError):
        ours.get()
    assert tokens() == FREE


def test_a_queue_closed_by_one_is_closed_and_drained_by_the_other(ours, theirs, protocol_keys):
    ours.create()
    ours.put(b"1")
    ours.put(b"2")
    ours.close()
    other = theirs()
    assert other.closed()
    for refused in (lambda: other.put(b"3"), lambda: other.put_nowait(b"3"), other.close):
        with pytest.raises(stepwise.Closed):
            refused()
    assert [other.get(), other.get_nowait()] == [b"1", b"2"]
    for refused in (other.get, other.get_nowait):
        with pytest.raises(stepwise.Closed):
            refused()
    assert protocol_keys()[":closed"] == ("list", 2)


def test_a_marker_of_the_close_that_theirs_took_leaves_the_queue_closed_for_ours(
    ours, theirs, parked, protocol_keys
):
    ours.create()
    getting = Background(theirs(faithful=True).get)
    parked()
    ours.close()
    with pytest.raises(stepwise.Closed):
        getting.result()
    assert protocol_keys()[":closed"] == ("list", 1)
    assert ours.closed()
    for refused in (lambda: ours.put(b"x"), ours.get, ours.get_nowait, ours.close):
        with pytest.raises(QueueClosedError):
            refused()
    assert protocol_keys()[":closed"] == ("list", 1)


def test_a_role_that_theirs_kept_when_it_found_the_queue_closed_does_not_hang_ours(
    ours, theirs, tokens
):
    """The reference raises before it gives the role back."""
    ours.create()
    ours.close()
    other = theirs(faithful=True)
    for refused in (lambda: other.put(b"x"), other.get):
        with pytest.raises(stepwise.Closed):
            refused()
    assert tokens() == (0, 0)
    for refused in (lambda: ours.put(b"x"), ours.get, ours.close):
        with pytest.raises(QueueClosedError):
            refused()


# Deleting.


def test_ours_deletes_and_their_blocked_get_ends(ours, theirs, parked, contents):
    ours.create()
    getting = Background(theirs().get)
    parked()
    with pytest.raises(QueueInUseError):
        ours.delete_nowait()
    ours.delete()
    with pytest.raises(stepwise.Closed):
        getting.result()
    assert contents() == {}


def test_ours_deletes_and_their_blocked_put_ends(ours, theirs, parked, contents):
    ours.create(1)
    ours.put(b"1")
    putting = Background(theirs().put, b"2")
    parked()
    with pytest.raises(QueueInUseError):
        ours.delete_nowait()
    ours.delete()
    putting.result()
    assert contents() == {}


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_ours_deletes_while_theirs_waits_for_a_role_that_ours_has(
    ours, theirs, parked, contents, role
):
    ours.create(1)
    other = theirs()
    if role == "producer":
        ours.put(b"1")
        holding = Background(ours.put, b"2")
        parked(1)
        waiting = Background(other.put, b"3")
    else:
        holding = Background(ours.get)
        parked(1)
        waiting = Background(other.get)
    parked(2)
    ours.delete()
    with pytest.raises(QueueDoesNotExistError):
        holding.result()
    with pytest.raises((stepwise.Closed, stepwise.DoesNotExist)):
        waiting.result()
    assert contents() == {}


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_ours_deletes_while_ours_waits_in_line_for_a_role_that_theirs_has(
    ours, theirs, parked, contents, role
):
    ours.create()
    other = theirs()
    other.take(role)
    if role == "producer":
        waiting = [Background(ours.put, b"x") for _ in range(3)]
    else:
        waiting = [Background(ours.get) for _ in range(3)]
    parked(3)
    deleting = Background(ours.delete)
    until(lambda: not other.exists())
    for wait in waiting:
        with pytest.raises(QueueDoesNotExistError):
            wait.result()
    other.give_back(role)
    deleting.result()
    assert contents() == {}


def test_theirs_deletes_and_our_waiting_get_ends_within_about_a_second(
    ours, theirs, parked, contents
):
    other = theirs()
    other.create()
    getting = Background(ours.get)
    parked()
    other.delete()
    with pytest.raises(QueueDoesNotExistError):
        getting.result()
    assert contents() == {}


@pytest.mark.usefixtures("no_ticks")
def test_theirs_deletes_and_our_waiting_put_ends_at_once(ours, theirs, parked, contents):
    other = theirs()
    other.create(1)
    other.put(b"1")
    putting = Background(ours.put, b"2")
    parked()
    other.delete()
    with pytest.raises(QueueDoesNotExistError):
        putting.result()
    assert contents().keys() <= {":mp:done"}


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_theirs_deletes_and_all_of_ours_that_wait_in_line_end(ours, theirs, parked, contents, role):
    other = theirs()
    other.create(1)
    other.put(b"1")
    if role == "consumer":
        other.get()
    call = {"producer": lambda: ours.put(b"2"), "consumer": ours.get}[role]
    waiting = [Background(call) for _ in range(4)]
    parked(4)
    other.delete()
    for wait in waiting:
        with pytest.raises(QueueDoesNotExistError):
            wait.result()
    assert contents() == {}


def test_a_queue_that_theirs_deleted_can_be_created_again_by_ours(ours, theirs, protocol_keys):
    ours.create(1)
    ours.put(b"old")
    theirs().delete()
    assert not ours.exists()
    assert protocol_keys() == {}
    ours.create(2)
    assert ours.length() == 0
    assert ours.stats().produced_messages == 0
    ours.put_nowait(b"new")
    assert theirs().get() == b"new"


def test_a_queue_that_ours_deleted_can_be_created_again_by_theirs(ours, theirs):
    ours.create(1)
    ours.put(b"old")
    ours.delete()
    other = theirs()
    assert not other.exists()
    other.create(1)
    other.put_nowait(b"new")
    assert ours.get_nowait() == b"new"


def test_a_delete_that_gave_up_is_finished_by_the_next_one(ours, theirs, contents):
    ours.create()
    other = theirs()
    other.take("consumer")
    with pytest.raises(QueueInUseError):
        ours.delete(timeout=0.1)
    assert not ours.exists()
    assert not other.exists()
    other.give_back("consumer")
    ours.delete()
    assert contents() == {}


@pytest.mark.parametrize("step", range(1, 20))
def test_ours_is_refused_at_every_step_of_a_delete_of_theirs(ours, theirs, contents, step):
    """From the first step on the queue does not exist; what ours tries leaves nothing behind."""
    ours.create(2)
    ours.put(b"x")
    stop = Stop(step)
    other = theirs(before=stop)
    deleting = Background(other.delete)
    until(lambda: stop.reached.is_set() or not deleting.is_alive())
    if step == 1:
        assert ours.exists()
    else:
        for call in (
            lambda: ours.put(b"y"),
            lambda: ours.put_nowait(b"y", overfill=True),
            ours.get,
            ours.get_nowait,
            ours.close,
            ours.length,
            ours.closed,
        ):
            with pytest.raises(QueueDoesNotExistError):
                call()
    stop.go_on()
    deleting.result()
    assert contents().keys() <= {":mp:meta"}


def test_a_delete_that_gave_up_does_not_outlive_the_queue(ours, theirs):
    """Theirs knows nothing of what ours notes beside the protocol's keys, and leaves it there."""
    ours.create()
    other = theirs()
    other.take("consumer")
    with pytest.raises(QueueInUseError):
        ours.delete(timeout=0.1)
    other.give_back("consumer")
    other.create()
    other.delete()
    for delete in (lambda: ours.delete(timeout=1), ours.delete_nowait):
        with pytest.raises(QueueDoesNotExistError):
            delete()


# Whatever ours raises, its role is free again.


def refusals(ours, other):
    """Every error that a put, a get or a close of ours can end with, before and after a wait."""
    yield Empty, ours.get_nowait
    yield Empty, lambda: ours.get(timeout=0)
    yield Empty, lambda: ours.get(timeout=0.1)
    ours.put(b"x")
    yield Full, lambda: ours.put_nowait(b"y")
    yield Full, lambda: ours.put(b"y", timeout=0)
    yield Full, lambda: ours.put(b"y", timeout=0.1)
    for role, calls in {
        "producer": [
            lambda: ours.put_nowait(b"y"),
            lambda: ours.put(b"y", timeout=0.05),
            ours.close_nowait,
            lambda: ours.close(timeout=0.05),
        ],
        "consumer": [ours.get_nowait, lambda: ours.get(timeout=0.05)],
    }.items():
        for call in calls:
            other.take(role)
            with pytest.raises(QueueInUseError):
                call()
            other.give_back(role)
            yield None, None
    other.close()
    yield QueueClosedError, lambda: ours.put_nowait(b"y")
    yield QueueClosedError, lambda: ours.put(b"y")
    yield QueueClosedError, ours.close
    yield QueueClosedError, ours.close_nowait
    assert ours.get() == b"x"
    yield QueueClosedError, ours.get
    yield QueueClosedError, ours.get_nowait


def test_ours_gives_its_role_back_with_every_refusal(ours, theirs, tokens):
    ours.create(1)
    other = theirs()
    for error, call in refusals(ours, other):
        if call is not None:
            with pytest.raises(error):
                call()
        assert tokens() == FREE


class Interruption(BaseException):
    """Stands for KeyboardInterrupt, in a thread that is not the main one."""


def interrupt(thread):
    found = ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(Interruption)
    )
    assert found == 1


def waits(ours, other):
    """Four ways in which ours can wait."""

    def for_item():
        return lambda: ours.get()

    def for_space():
        ours.put(b"x")
        return lambda: ours.put(b"y")

    def for_consumer():
        other.take("consumer")
        return lambda: ours.get()

    def for_producer():
        other.take("producer")
        return lambda: ours.put(b"y")

    return {
        "item": for_item,
        "space": for_space,
        "consumer": for_consumer,
        "producer": for_producer,
    }


def goes_on(ours, other, tokens, reason):
    """After a wait of ours was broken off, another client can put and get."""
    if reason in ("consumer", "producer"):
        other.give_back(reason)
    until(lambda: tokens() == FREE)
    if ours.length():
        assert other.get() == b"x"
    other.put_nowait(b"z")
    assert other.get_nowait() == b"z"
    assert tokens() == FREE


@pytest.mark.parametrize("reason", ["item", "space", "consumer", "producer"])
def test_ours_gives_its_role_back_when_its_thread_is_interrupted(
    ours, theirs, parked, tokens, reason
):
    ours.create(1)
    other = theirs()
    waiting = Background(waits(ours, other)[reason]())
    parked()
    interrupt(waiting)
    with pytest.raises(Interruption):
        waiting.result()
    goes_on(ours, other, tokens, reason)


@pytest.mark.parametrize("reason", ["item", "space", "consumer", "producer"])
def test_ours_gives_its_role_back_when_its_task_is_cancelled(ours, theirs, client, tokens, reason):
    ours.create(1)
    other = theirs()
    waits(ours, other)[reason]()
    operations = inside.operations(ours)
    before = blocked(client)
    operation = {
        "item": lambda: operations.get(True, None),
        "consumer": lambda: operations.get(True, None),
        "space": lambda: operations.put(b"y", True, None),
        "producer": lambda: operations.put(b"y", True, None),
    }[reason]()

    async def wait_and_be_cancelled():
        session = inside.bind(ours).asession()
        task = asyncio.create_task(adrive(operation, session))
        while blocked(client) == before:
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(wait_and_be_cancelled())
    goes_on(ours, other, tokens, reason)


@pytest.mark.parametrize("reason", ["item", "space", "consumer", "producer"])
def test_ours_gives_its_role_back_when_its_connection_is_cut_for_good(
    ours, theirs, client, parked, tokens, reason
):
    ours.create(1)
    other = theirs()
    fragile = PressureQueue(ours.name, url=ours.url, reconnect=0)
    waiting = Background(waits(fragile, other)[reason]())
    parked()
    (waiter,) = waiters(client)
    client.client_kill_filter(_id=waiter)
    with pytest.raises(ConnectionError):
        waiting.result()
    goes_on(ours, other, tokens, reason)


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_ours_gives_a_role_back_that_it_is_granted_as_it_gives_up(
    ours, theirs, tokens, monkeypatch, role
):
    ours.create(1)
    other = theirs()
    other.take(role)
    evaluate = RedisSession._evaluate

    async def and_then_it_is_free(session, wire, op, args, *rest):
        reply = await evaluate(session, wire, op, args, *rest)
        if b"now" in args:  # the last call; the place in line is given up after it
            other.give_back(role)
        return reply

    monkeypatch.setattr(RedisSession, "_evaluate", and_then_it_is_free)
    # Longer than the second that a wait in line leaves to the server to end.
    call = {"producer": lambda: ours.put(b"x", timeout=1.2), "consumer": lambda: ours.get(1.2)}
    with pytest.raises(QueueInUseError):
        call[role]()
    assert tokens() == FREE


@pytest.mark.parametrize("side", ["put", "get"])
def test_ours_gives_its_role_back_and_keeps_the_item_when_the_server_refuses_a_key(
    ours, theirs, client, parked, tokens, side
):
    ours.create(1)
    other = theirs()
    count = {"put": "produced_messages", "get": "consumed_messages"}[side]
    wrong = f"__pressure__:{ours.name}:stats:{count}"
    if side == "put":
        ours.put(b"x")
        client.rename(wrong, wrong + "-kept")
        waiting = Background(ours.put, b"y")
    else:
        waiting = Background(ours.get)
    parked()
    client.lpush(wrong, "not a number")
    if side == "put":
        assert other.get() == b"x"
    else:
        other.put(b"x")
    with pytest.raises(WrongKeyTypeError, match=count):
        waiting.result()
    assert tokens() == FREE
    client.delete(wrong, wrong + "-kept")
    if side == "put":
        other.put_nowait(b"x")
    assert other.get_nowait() == b"x"
    other.put_nowait(b"y")
    assert ours.get_nowait() == b"y"


# Clients that die.


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_a_role_that_a_dead_client_of_theirs_had_stays_taken(ours, theirs, tokens, role):
    """No client can know that it is dead: the protocol has no lease."""
    ours.create(1)
    ours.put(b"x")
    other = theirs()
    other.take(role)
    other.abort()
    call = {"producer": lambda: ours.put(b"y", timeout=0.2), "consumer": lambda: ours.get(0.2)}
    with pytest.raises(QueueInUseError):
        call[role]()
    assert sorted(tokens()) == [0, 1]
    assert ours.length() == 1


def test_a_client_of_theirs_that_dies_in_line_leaves_the_role_to_the_next(ours, theirs, parked):
    ours.create()
    holder, doomed = theirs(), theirs()
    holder.take("consumer")
    in_line = Background(doomed.get)
    parked(1)
    getting = Background(ours.get)
    parked(2)
    doomed.abort()
    with pytest.raises(stepwise.Aborted):
        in_line.result()
    ours.put(b"x")
    holder.give_back("consumer")
    assert getting.result() == b"x"


@pytest.mark.parametrize("waiting", ["for an item", "for space"])
def test_a_role_that_a_killed_client_of_ours_had_goes_to_the_next_in_line(
    server, name, ours, theirs, parked, waiting
):
    """Its lease ends it, as soon as one of ours stands in line too."""
    ours.create(1)
    call = "get()"
    if waiting == "for space":
        ours.put(b"x")
        call = "put(b'never')"
    q = f"pressure_mp.PressureQueue({name!r}, url={server.url!r}, lease=0.5)"
    doomed = subprocess.Popen([sys.executable, "-c", f"import pressure_mp; {q}.{call}"])
    try:
        parked(1)
    finally:
        doomed.kill()
        doomed.wait()
    parked(0)
    other = theirs()
    if waiting == "for an item":
        first = Background(other.get)
        parked(1)
        second = Background(ours.get)
        parked(2)
        ours.put(b"1")
        assert first.result() == b"1"
        ours.put(b"2")
        assert second.result() == b"2"
    else:
        first = Background(other.put, b"1")
        parked(1)
        second = Background(ours.put, b"2")
        parked(2)
        assert [ours.get() for _ in range(3)] == [b"x", b"1", b"2"]
        first.result()
        second.result()


# All clients at once.


class Watcher(threading.Thread):
    """Looks at the queue as often as it can; remembers the most it ever saw."""

    def __init__(self, client, name):
        super().__init__(daemon=True)
        self._client, self._prefix = client, f"__pressure__:{name}"
        self._ended = threading.Event()
        self.samples = self.longest = 0
        self.most = collections.Counter()
        self.start()

    def run(self):
        parts = ("", ":producer_free", ":consumer_free", ":not_full")
        granted = (":mp:producer_granted", ":mp:consumer_granted")
        while not self._ended.is_set():
            with self._client.pipeline() as look:
                for part in (*parts, *granted):
                    look.llen(self._prefix + part)
                length, producers, consumers, signs, p_granted, c_granted = look.execute()
            self.samples += 1
            for part, seen in {
                "length": length,
                "producer": producers + p_granted,
                "consumer": consumers + c_granted,
                "sign": signs,
            }.items():
                self.most[part] = max(self.most[part], seen)

    def end(self):
        self._ended.set()
        self.join()


class Crowd:
    """Producers and consumers of both makes on one queue.

    Ours are threads, theirs are threads or processes; each has a client of its own.
    """

    def __init__(self, ours, theirs, producers, consumers, items):
        self._ours = ours
        self.expected = {(number, n) for number in range(len(producers)) for n in range(items)}
        self._producing = [
            Background(self._produce, ours.put, number, items)
            if make == "ours"
            else theirs("produce", number, items)
            for number, make in enumerate(producers)
        ]
        self._consuming = [
            Background(self._consume, ours.get) if make == "ours" else theirs("consume")
            for make in consumers
        ]

    def _produce(self, put, number, items):
        for n in range(items):
            put(b"%d %d" % (number, n))

    def _consume(self, get):
        received = []
        while True:
            try:
                received.append(get())
            except QueueClosedError:
                return received

    def finish(self):
        for producing in self._producing:
            producing.result()
        self._ours.close()
        self._received = [consuming.result() for consuming in self._consuming]

    def check(self):
        """Nothing lost, nothing twice; each consumer sees each producer's items in order."""
        received = [[tuple(map(int, item.split())) for item in one] for one in self._received]
        assert sorted(item for one in received for item in one) == sorted(self.expected)
        for one in received:
            last = collections.defaultdict(lambda: -1)
            for number, n in one:
                assert n > last[number]
                last[number] = n


class Elsewhere:
    """A call in another process, with the ``result()`` of a Background."""

    def __init__(self, pool, call, *args):
        self._result = pool.apply_async(call, args)

    def result(self, limit=LIMIT):
        return self._result.get(limit)


@pytest.fixture(params=["threads", "processes"])
def their_programs(request, server, name, theirs):
    """Runs ``stepwise.produce`` and ``stepwise.consume``."""
    if request.param == "threads":
        yield lambda what, *args: Background(getattr(stepwise, what), theirs(), *args)
        return
    with multiprocessing.get_context("spawn").Pool(4) as pool:  # its end ends the processes
        yield lambda what, *args: Elsewhere(pool, stepwise.run, what, server.port, name, *args)


BOTH = ["ours", "theirs", "ours", "theirs"]


@pytest.mark.parametrize(
    ("producers", "consumers", "over"),
    [
        # The reference's get says that there is room some steps after it took the item, and the
        # reference's put believes it: among themselves they can exceed the bound by one.
        (BOTH, BOTH, 1),
        (["ours", "ours"], BOTH, 0),
        (["theirs", "theirs"], ["ours", "ours"], 0),
    ],
    ids=["both put and get", "ours put", "theirs put and ours get"],
)
def test_a_crowd_of_both_makes_loses_nothing_and_keeps_the_bound_and_the_roles(
    server, name, ours, their_programs, tokens, producers, consumers, over
):
    ours.create(3)
    with server.client() as watching:
        watcher = Watcher(watching, name)
        crowd = Crowd(ours, their_programs, producers, consumers, 400 // len(producers))
        try:
            crowd.finish()
        finally:
            watcher.end()
    crowd.check()
    assert watcher.samples > 50
    assert watcher.most["length"] <= 3 + over
    assert watcher.most["producer"] == watcher.most["consumer"] == 1
    assert tokens() == FREE
    stats = ours.stats()
    assert stats.produced_messages == stats.consumed_messages == len(crowd.expected)
