"""Every operation and every error of the specification, and a queue's twelve keys after it."""

from __future__ import annotations

import queue as stdlib
import time

import pytest
from waiting import LIMIT, Background

from pressure_mp import (
    ConsumerInUseError,
    Empty,
    Full,
    PressureError,
    PressureQueue,
    ProducerInUseError,
    QueueAlreadyExistsError,
    QueueClosedError,
    QueueDoesNotExistError,
    QueueFullError,
    QueueInUseError,
    ShutDown,
)

#: A list of one element that means nothing, and the two of ``:closed``.
SIGN, CLOSED = ("list", 1), ("list", 2)

#: The keys of a queue that no client has used yet, with a bound of 3.
CREATED = {
    ":bound": b"3",
    ":producer_free": SIGN,
    ":consumer_free": SIGN,
    ":not_full": SIGN,
    ":stats:consumed_bytes": b"0",
}

#: Every operation that needs a queue.
NEEDS_A_QUEUE = {
    "length": lambda q: q.length(),
    "closed": lambda q: q.closed(),
    "put": lambda q: q.put(b"x"),
    "put with a timeout": lambda q: q.put(b"x", timeout=1),
    "put_nowait": lambda q: q.put_nowait(b"x"),
    "overfilling put": lambda q: q.put(b"x", overfill=True),
    "get": lambda q: q.get(),
    "get with a timeout": lambda q: q.get(timeout=1),
    "get_nowait": lambda q: q.get_nowait(),
    "close": lambda q: q.close(),
    "close_nowait": lambda q: q.close_nowait(),
    "delete": lambda q: q.delete(),
    "delete_nowait": lambda q: q.delete_nowait(),
    "stats": lambda q: q.stats(),
}


def seconds(call):
    """How long ``call`` took, and the error it raised."""
    begin = time.monotonic()
    with pytest.raises(PressureError) as caught:
        call()
    return time.monotonic() - begin, caught.value


# Create, Exists, Length, Closed.


def test_create_sets_the_bound_and_frees_both_roles(ours, protocol_keys):
    ours.create(3)
    assert protocol_keys() == CREATED


def test_create_without_a_bound_saves_a_bound_of_0(ours, protocol_keys):
    ours.create()
    assert protocol_keys() == {**CREATED, ":bound": b"0"}


def test_create_of_a_queue_that_exists_is_refused_and_changes_nothing(ours, name, contents):
    ours.create(3)
    ours.put(b"x")
    before = contents()
    for bound in (0, 3, 5):
        with pytest.raises(QueueAlreadyExistsError, match=name):
            ours.create(bound)
    assert contents() == before


@pytest.mark.parametrize(
    ("bound", "error"), [(-1, ValueError), ("3", TypeError), (1.5, TypeError), (None, TypeError)]
)
def test_create_refuses_a_value_that_is_no_bound(ours, contents, bound, error):
    with pytest.raises(error) as caught:
        ours.create(bound)
    assert isinstance(caught.value, PressureError)
    assert contents() == {}


def test_a_handle_neither_creates_nor_looks_for_its_queue(ours, contents):
    assert not ours.exists()
    assert contents() == {}


def test_a_queue_exists_from_create_to_delete_also_when_it_is_closed(ours):
    ours.create()
    assert ours.exists()
    ours.close()
    assert ours.exists()
    ours.delete()
    assert not ours.exists()


@pytest.mark.parametrize("operation", NEEDS_A_QUEUE)
def test_without_a_queue_an_operation_is_refused_and_leaves_no_key(ours, name, contents, operation):
    with pytest.raises(QueueDoesNotExistError, match=name):
        NEEDS_A_QUEUE[operation](ours)
    assert contents() == {}


@pytest.mark.parametrize("operation", NEEDS_A_QUEUE)
def test_after_delete_an_operation_is_refused_and_leaves_no_key(ours, name, contents, operation):
    ours.create(1)
    ours.put(b"x")
    ours.delete()
    with pytest.raises(QueueDoesNotExistError, match=name):
        NEEDS_A_QUEUE[operation](ours)
    assert contents() == {}


def test_length_counts_the_queued_items(ours):
    ours.create(3)
    lengths = [ours.length()]
    for step in (lambda: ours.put(b"x"), lambda: ours.put(b"y"), ours.get, ours.get):
        step()
        lengths.append(ours.length())
    assert lengths == [0, 1, 2, 1, 0]


@pytest.mark.parametrize("look", [PressureQueue.exists, PressureQueue.length, PressureQueue.closed])
def test_to_look_takes_no_role_and_needs_none(ours, theirs, contents, look):
    ours.create(3)
    other = theirs()
    other.take("producer")
    other.take("consumer")
    before = contents()
    look(ours)
    assert contents() == before


# Put.


def test_put_appends_the_item_counts_it_and_names_its_producer(ours, protocol_keys):
    ours.create(3)
    ours.put(b"abc")
    ours.put_nowait(b"de")
    assert protocol_keys() == {
        **CREATED,
        "queue": [b"de", b"abc"],
        ":producer": ours.client_id.encode(),
        ":stats:produced_messages": b"2",
        ":stats:produced_bytes": b"5",
    }


@pytest.mark.parametrize("put", [PressureQueue.put, PressureQueue.put_nowait])
def test_the_put_that_fills_the_queue_takes_the_sign_of_room(ours, protocol_keys, put):
    ours.create(2)
    put(ours, b"1")
    assert protocol_keys()[":not_full"] == SIGN
    put(ours, b"2")
    assert ":not_full" not in protocol_keys()
    assert protocol_keys()[":producer_free"] == SIGN


def test_without_a_bound_there_is_always_a_sign_of_room(ours, protocol_keys):
    ours.create()
    for _ in range(50):
        ours.put_nowait(b"x")
    assert protocol_keys()[":not_full"] == SIGN
    assert ours.length() == 50


def test_a_put_on_a_full_queue_is_refused_and_changes_nothing(ours, contents):
    ours.create(1)
    ours.put(b"x")
    before = contents()
    for call in (lambda: ours.put_nowait(b"y"), lambda: ours.put(b"y", timeout=0)):
        _, error = seconds(call)
        assert isinstance(error, QueueFullError)
        assert isinstance(error, stdlib.Full)
        assert not isinstance(error, QueueInUseError)
        assert contents() == before


def test_a_put_waits_for_space_as_long_as_it_says_and_then_changes_nothing(ours, contents):
    ours.create(1)
    ours.put(b"x")
    before = contents()
    took, error = seconds(lambda: ours.put(b"y", timeout=0.3))
    assert isinstance(error, QueueFullError)
    assert took > 0.29
    assert contents() == before


def test_a_put_waits_for_space_and_then_puts(ours, parked, protocol_keys):
    ours.create(1)
    ours.put(b"x")
    putting = Background(ours.put, b"y", timeout=LIMIT)
    parked()
    assert ":producer_free" not in protocol_keys(), "the client that waits is the producer"
    assert ours.get() == b"x"
    putting.result()
    assert protocol_keys()["queue"] == [b"y"]
    assert protocol_keys()[":producer_free"] == SIGN


def test_an_overfilling_put_does_not_look_at_the_bound(ours, protocol_keys):
    ours.create(1)
    for number in range(3):
        ours.put(b"%d" % number, overfill=True)
    ours.put_nowait(b"3", overfill=True)
    seen = protocol_keys()
    assert seen["queue"] == [b"3", b"2", b"1", b"0"]
    assert seen[":stats:produced_messages"] == b"4"
    assert seen[":producer_free"] == SIGN
    assert ":not_full" not in seen


def test_an_overfilled_queue_takes_items_again_when_it_is_below_its_bound(ours, protocol_keys):
    ours.create(2)
    for number in range(4):
        ours.put(b"%d" % number, overfill=True)
    for length in (3, 2):
        ours.get()
        assert ours.length() == length
        assert ":not_full" not in protocol_keys()
        with pytest.raises(Full):
            ours.put_nowait(b"x")
    ours.get()
    assert protocol_keys()[":not_full"] == SIGN
    ours.put_nowait(b"x")
    assert [ours.get(), ours.get()] == [b"3", b"x"]


@pytest.mark.parametrize("item", ["text", 1, None, bytearray(b"x"), memoryview(b"x")])
def test_an_item_is_bytes(ours, contents, item):
    ours.create()
    before = contents()
    for put in (ours.put, ours.put_nowait):
        with pytest.raises(TypeError, match=type(item).__name__):
            put(item)
    assert contents() == before


@pytest.mark.parametrize(
    "item",
    [b"", b"\0", b"\r\n", b"$-1\r\n", bytes(range(256)), b"*" * 1_000_000, b"-ERR no", b"empty"],
    ids=["nothing", "nul", "line end", "nil", "all bytes", "a million", "error", "status"],
)
def test_items_keep_their_bytes(ours, protocol_keys, item):
    ours.create()
    ours.put(item)
    ours.put_nowait(item)
    assert protocol_keys()["queue"] == [item, item]
    assert ours.get() == ours.get_nowait() == item
    assert protocol_keys()[":stats:consumed_bytes"] == b"%d" % (2 * len(item))


# Get.


@pytest.mark.parametrize("get", [PressureQueue.get, PressureQueue.get_nowait])
def test_get_takes_the_oldest_item_counts_it_and_names_its_consumer(ours, protocol_keys, get):
    ours.create(3)
    for item in (b"abc", b"de", b"f"):
        ours.put(item)
    assert ":not_full" not in protocol_keys()
    assert get(ours) == b"abc"
    assert get(ours) == b"de"
    assert protocol_keys() == {
        **CREATED,
        "queue": [b"f"],
        ":producer": ours.client_id.encode(),
        ":consumer": ours.client_id.encode(),
        ":stats:produced_messages": b"3",
        ":stats:produced_bytes": b"6",
        ":stats:consumed_messages": b"2",
        ":stats:consumed_bytes": b"5",
    }
    assert get(ours) == b"f"
    assert "queue" not in protocol_keys()


def test_a_get_from_an_empty_queue_is_refused_and_changes_nothing(ours, contents):
    ours.create(3)
    ours.put(b"x")
    ours.get()  # this names the consumer, as the next calls would
    before = contents()
    for call in (ours.get_nowait, lambda: ours.get(timeout=0)):
        _, error = seconds(call)
        assert isinstance(error, Empty)
        assert isinstance(error, stdlib.Empty)
        assert not isinstance(error, QueueInUseError)
        assert contents() == before


def test_a_get_waits_for_an_item_for_its_timeout_and_then_has_named_its_consumer(ours, contents):
    """Nothing else has changed (specification: Get)."""
    ours.create(3)
    before = {**contents(), ":consumer": ours.client_id.encode()}
    took, error = seconds(lambda: ours.get(timeout=0.3))
    assert isinstance(error, Empty)
    assert took > 0.29
    assert contents() == before


def test_a_get_waits_for_an_item_and_then_gets_it(ours, parked, protocol_keys):
    ours.create(3)
    getting = Background(ours.get, timeout=LIMIT)
    parked()
    assert ":consumer_free" not in protocol_keys(), "the client that waits is the consumer"
    ours.put(b"x")
    assert getting.result() == b"x"
    assert protocol_keys()[":consumer_free"] == SIGN


# Close.


@pytest.mark.parametrize("close", [PressureQueue.close, PressureQueue.close_nowait])
def test_close_sets_the_marker_and_names_the_client_that_closed(ours, protocol_keys, close):
    ours.create(3)
    assert not ours.closed()
    close(ours)
    assert ours.closed()
    assert protocol_keys() == {
        **CREATED,
        ":closed": CLOSED,
        ":producer": ours.client_id.encode(),
    }


def test_a_queue_can_be_closed_once(ours, contents):
    ours.create()
    ours.close()
    before = contents()
    for close in (ours.close, ours.close_nowait, lambda: ours.close(timeout=1)):
        with pytest.raises(QueueClosedError):
            close()
    assert contents() == before


def test_a_closed_queue_takes_no_items_and_changes_nothing(ours, name, contents):
    ours.create(1)
    ours.put(b"x")
    ours.close()
    before = contents()
    for put in (
        lambda: ours.put(b"y"),
        lambda: ours.put_nowait(b"y"),
        lambda: ours.put(b"y", timeout=1),
        lambda: ours.put(b"y", overfill=True),
    ):
        with pytest.raises(ShutDown, match=name):
            put()
    assert contents() == before


def test_a_closed_queue_can_be_drained_and_then_says_that_it_is_closed(ours, protocol_keys):
    ours.create(3)
    for item in (b"1", b"2", b"3"):
        ours.put(item)
    ours.close()
    assert [ours.get(), ours.get_nowait(), ours.get(timeout=1)] == [b"1", b"2", b"3"]
    before = protocol_keys()
    for get in (ours.get, ours.get_nowait, lambda: ours.get(timeout=1)):
        with pytest.raises(QueueClosedError):
            get()
    assert protocol_keys() == before
    assert before[":closed"] == CLOSED
    assert before[":consumer_free"] == SIGN


# Delete.


@pytest.mark.parametrize("delete", [PressureQueue.delete, PressureQueue.delete_nowait])
def test_delete_leaves_no_key(ours, contents, delete):
    ours.create(2)
    for _ in range(3):
        ours.put(b"x", overfill=True)
    ours.get()
    ours.close()
    assert len(contents()) > 10
    delete(ours)
    assert contents() == {}


def test_a_deleted_queue_can_be_created_again_and_knows_nothing_of_its_past(ours, protocol_keys):
    ours.create(1)
    ours.put(b"x")
    ours.get()
    ours.close()
    ours.delete()
    ours.create(3)
    assert protocol_keys() == CREATED
    assert not ours.closed()
    assert ours.stats().produced_messages == 0


def test_delete_leaves_other_queues_alone(server, name, ours, contents):
    other = PressureQueue(f"{name}:2", url=server.url)
    for q in (ours, other):
        q.create()
        q.put(b"x")
    ours.delete()
    assert {key.split(":")[1] for key in contents()} == {"2"}
    assert other.get() == b"x"


# A role that another client has.


def test_a_put_while_another_producer_is_at_work_is_refused_in_time(ours, theirs, contents):
    ours.create(3)
    theirs().take("producer")
    before = contents()
    for limit, call in [
        (0, lambda: ours.put_nowait(b"x")),
        (0, lambda: ours.put_nowait(b"x", overfill=True)),
        (0, lambda: ours.put(b"x", timeout=0)),
        (0.3, lambda: ours.put(b"x", timeout=0.3)),
    ]:
        took, error = seconds(call)
        assert isinstance(error, ProducerInUseError)
        assert isinstance(error, QueueInUseError)
        assert isinstance(error, QueueFullError)
        assert isinstance(error, stdlib.Full)
        assert took >= limit * 0.95
        assert contents() == before


def test_a_get_while_another_consumer_is_at_work_is_refused_in_time(ours, theirs, contents):
    ours.create(3)
    ours.put(b"x")
    theirs().take("consumer")
    before = contents()
    for limit, call in [
        (0, ours.get_nowait),
        (0, lambda: ours.get(timeout=0)),
        (0.3, lambda: ours.get(timeout=0.3)),
    ]:
        took, error = seconds(call)
        assert isinstance(error, ConsumerInUseError)
        assert isinstance(error, QueueInUseError)
        assert isinstance(error, stdlib.Empty)
        assert took >= limit * 0.95
        assert contents() == before


def test_a_close_while_another_producer_is_at_work_is_refused_in_time(ours, theirs, contents):
    ours.create(3)
    theirs().take("producer")
    before = contents()
    for limit, call in [
        (0, ours.close_nowait),
        (0, lambda: ours.close(timeout=0)),
        (0.3, lambda: ours.close(timeout=0.3)),
    ]:
        took, error = seconds(call)
        assert isinstance(error, QueueInUseError)
        assert not isinstance(error, (stdlib.Full, stdlib.Empty))
        assert took >= limit * 0.95
        assert contents() == before


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_delete_nowait_while_another_client_is_at_work_is_refused_and_changes_nothing(
    ours, theirs, contents, role
):
    ours.create(3)
    ours.put(b"x")
    other = theirs()
    other.take(role)
    before = contents()
    with pytest.raises(QueueInUseError, match=role):
        ours.delete_nowait()
    assert contents() == before
    other.give_back(role)
    ours.delete_nowait()
    assert contents() == {}


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_delete_waits_for_another_client_at_work_while_the_queue_is_gone_for_others(
    ours, theirs, parked, contents, role
):
    ours.create(3)
    ours.put(b"x")
    other = theirs()
    other.take(role)
    deleting = Background(ours.delete)
    parked()
    for operation in ("length", "put", "get", "close"):
        with pytest.raises(QueueDoesNotExistError):
            NEEDS_A_QUEUE[operation](ours)
    other.give_back(role)
    deleting.result()
    assert contents() == {}


@pytest.mark.parametrize("role", ["producer", "consumer"])
def test_a_role_in_use_does_not_hinder_the_other_side(ours, theirs, role):
    ours.create(3)
    ours.put(b"x")
    theirs().take(role)
    if role == "producer":
        assert ours.get() == b"x"
    else:
        ours.put(b"y")
        ours.close()
        assert ours.length() == 2


# Names.


@pytest.mark.parametrize(
    "suffix", [" with spaces", ":with:colons", "\nline", "\0nul", "☃", "{tag}", "*?[a]"]
)
def test_any_name_will_do(server, name, client, suffix):
    q = PressureQueue(name + suffix, url=server.url)
    q.create(1)
    q.put(b"x")
    assert client.lrange(f"__pressure__:{name}{suffix}", 0, -1) == [b"x"]
    assert client.get(f"__pressure__:{name}{suffix}:bound") == b"1"
    assert q.get() == b"x"
    q.delete()
    assert not client.exists(f"__pressure__:{name}{suffix}:bound")


def test_another_prefix_begins_every_key(server, name, client):
    q = PressureQueue(name, url=server.url, prefix=f"{name}-prefix")
    q.create(1)
    q.put(b"x")
    q.get()
    q.close()
    found = [key.decode() for key in client.scan_iter(match=f"*{name}*")]
    assert len(found) > 10
    assert all(key.startswith(f"{name}-prefix:{name}:") for key in found)
    assert not PressureQueue(name, url=server.url).exists()
    q.delete()
    assert list(client.scan_iter(match=f"*{name}*")) == []
