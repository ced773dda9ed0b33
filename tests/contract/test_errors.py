"""Errors name the thing, the state it was in, and what to do; and nothing is lost or half done."""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.connection
import pickle
import queue as stdlib
import sys
import threading

import engines
import pytest
from brokers.servers import Server
from engines import Can
from ports import free_port
from waiting import lasting

import pressure_mp
from pressure_mp import JoinableQueue, PressureQueue, Queue

pytestmark = pytest.mark.usefixtures("world")


class Unpicklable:
    def __reduce__(self):
        raise RuntimeError("not me")


def explode():
    raise RuntimeError("boom")


class Explodes:
    """Can be pickled, but not unpickled."""

    def __reduce__(self):
        return explode, ()


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_every_error_is_a_pressure_error_and_the_stdlibs_where_it_has_one():
    assert issubclass(pressure_mp.Empty, (pressure_mp.PressureError, stdlib.Empty))
    assert issubclass(pressure_mp.Full, stdlib.Full)
    assert pressure_mp.QueueClosedError is pressure_mp.ShutDown
    assert pressure_mp.QueueFullError is pressure_mp.Full
    assert issubclass(pressure_mp.ProducerInUseError, pressure_mp.QueueInUseError)
    assert issubclass(pressure_mp.ProducerInUseError, stdlib.Full)
    assert issubclass(pressure_mp.ConsumerInUseError, stdlib.Empty)
    assert issubclass(pressure_mp.BrokerUnavailable, ConnectionError)
    if sys.version_info >= (3, 13):
        assert issubclass(pressure_mp.ShutDown, stdlib.ShutDown)
    errors = [e for e in vars(pressure_mp).values() if isinstance(e, type)]
    for error in errors:
        if issubclass(error, Exception):
            assert issubclass(error, pressure_mp.PressureError), error


def test_no_server_is_broker_unavailable_and_names_the_address():
    port = free_port()
    with pytest.raises(pressure_mp.BrokerUnavailable, match=f"redis://127.0.0.1:{port}/0"):
        Queue(url=f"redis://127.0.0.1:{port}", reconnect=0)
    q = PressureQueue("x", host="127.0.0.1", port=port, reconnect=0)
    for operation in (q.create, q.exists, q.length, q.closed, q.get, q.close, q.delete, q.stats):
        with pytest.raises(ConnectionError, match=str(port)):
            operation()
    with pytest.raises(pressure_mp.BrokerUnavailable):
        q.put(b"x")


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_no_server_at_the_default_address_tells_of_the_embedded_one(monkeypatch):
    from pressure_mp.engines.redis.address import RedisAddress
    from pressure_mp.engines.redis.connecting import unavailable

    default = RedisAddress("redis", "127.0.0.1", 6379)
    assert "embedded://" in str(unavailable(default, OSError("refused")))
    elsewhere = RedisAddress("redis", "127.0.0.1", 6380)
    assert "embedded://" not in str(unavailable(elsewhere, OSError("refused")))


@pytest.mark.parametrize("name", [7, b"bytes", ["list"]])
def test_a_name_that_is_no_string_is_a_type_error(name, url):
    with pytest.raises(TypeError, match="name is a str"):
        Queue(name=name, url=url)


def test_an_empty_name_is_an_error(url):
    with pytest.raises(pressure_mp.ArgumentError, match="empty"):
        Queue(name="", url=url)


@pytest.mark.parametrize("maxsize", ["3", 3.0, None, True])
def test_a_maxsize_that_is_no_integer_is_a_type_error(maxsize, url, name):
    with pytest.raises(TypeError, match="maxsize is an int"):
        Queue(maxsize, name, url=url)
    assert not PressureQueue(name, url=url).exists()


def test_a_negative_maxsize_is_no_bound(url, name):
    q = Queue(-1, name, url=url)
    q.put(1)
    assert q.maxsize == 0
    assert not q.full()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:6379", "no scheme"),
        ("redis://localhost:port", "cannot be read"),
        ("redis://localhost/seven", "'seven' is not a number"),
        ("gopher://localhost", "no engine for 'gopher://localhost'"),
        ("unix://", "names no socket"),
        ("redis://127.0.0.1:1/0?colour=blue", "unknown option"),
        ("redis://one:1,two:2", "names several hosts"),
        ("redis+cluster://", "names no host"),
        ("redis://localhost?allow_eviction=", "it is 1, or 0 for no"),
        ("memory://name?colour=blue", "memory:// has none"),
        ("memory://user@name", "memory:// has none"),
        ("embedded://directory", "names a host"),
    ],
)
def test_a_bad_url_is_an_address_error(url, message):
    with pytest.raises(pressure_mp.AddressError, match=message):
        Queue(url=url)


def test_url_and_host_together_are_an_error():
    with pytest.raises(pressure_mp.AddressError, match="not both"):
        Queue(url="redis://localhost", port=1)


@pytest.mark.only_threads("join_thread, prefetch")
@pytest.mark.parametrize("buffering", [0, 8])
@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_closed_queue_that_nothing_was_put_to_is_empty(kind, buffering, url):
    q = kind(url=url, buffering=buffering, prefetch=buffering)
    q.close()
    q.join_thread()
    assert q.empty()


@pytest.mark.only_threads("there is no prefetch in asyncio")
@pytest.mark.parametrize("put", [lambda q: q.put(1), lambda q: q.put_many([1])])
@pytest.mark.parametrize("buffering", [0, 8])
def test_a_closed_queue_that_was_put_to_is_an_os_error_when_it_is_gone(put, buffering, url):
    q = Queue(url=url, buffering=buffering, prefetch=buffering)
    put(q)
    q.close()
    for error in (OSError, ValueError):
        for call in (q.empty, q.get, lambda: q.put(1)):
            with pytest.raises(error, match="is closed"):
                call()


def test_a_closed_handle_says_whether_a_queue_that_goes_on_is_empty(url, name):
    q, other = Queue(name=name, url=url), Queue(name=name, url=url)
    q.close()
    other.put(1)
    assert not q.empty()
    other.get()
    assert q.empty()
    other.delete()


def test_an_unpicklable_object_raises_in_the_caller_and_nothing_is_queued(url, name):
    q = Queue(name=name, url=url)
    for item in (Unpicklable(), threading.Lock(), lambda: 0):
        with pytest.raises(pressure_mp.EncodingError, match=f"{type(item).__name__}.*{name}"):
            q.put(item)
    assert q.qsize() == 0
    assert q.unfinished_tasks == 0


@pytest.mark.parametrize(
    "item", [Unpicklable(), threading.Lock(), lambda: 0], ids=lambda item: type(item).__name__
)
@pytest.mark.parametrize("buffering", [0, 8])
@pytest.mark.parametrize("named", [False, True])
def test_an_unpicklable_object_is_a_pickling_error_whose_cause_is_what_pickle_raised(
    item, buffering, named, url, name
):
    with pytest.raises(Exception) as own:  # each raises another one
        pickle.dumps(item, 5)
    q = Queue(name=name if named else None, url=url, buffering=buffering)
    for put in (q.put, lambda item: q.put_many([1, item])):
        with pytest.raises(pickle.PicklingError) as caught:
            put(item)
        assert type(caught.value.__cause__) is type(own.value)
        assert str(caught.value.__cause__) == str(own.value)
    assert q.empty()
    q.delete()


@pytest.mark.only_threads("there is no SimpleQueue in asyncio")
@pytest.mark.parametrize("named", [False, True])
def test_a_simple_queue_raises_what_the_serializer_raised(named, url, name):
    q = pressure_mp.SimpleQueue(name if named else None, url=url)
    for item in (Unpicklable(), threading.Lock(), lambda: 0):
        with pytest.raises(Exception) as own:  # each raises another one
            pickle.dumps(item, 5)
        for put in (q.put, q.put_nowait):
            with pytest.raises(type(own.value)) as caught:
                put(item)
            assert type(caught.value) is type(own.value)
            assert caught.value.__cause__ is None
    assert q.empty()
    q.delete()
    q = pressure_mp.SimpleQueue(url=url, serializer=json)
    with pytest.raises(pressure_mp.EncodingError, match="not bytes"):
        q.put(1)


def test_an_item_that_cannot_be_decoded_is_set_aside(url, name):
    q = Queue(name=name, url=url)
    q.put(Explodes())
    q.put("good")
    with pytest.raises(pressure_mp.DecodingError, match=f"{name}.*boom") as caught:
        q.get()
    assert caught.value.payload == pickle.dumps(Explodes(), 5)
    assert q.get() == "good"
    assert q.rejected() == [caught.value.payload]
    assert q.stats().rejected == 1
    q.task_done()
    q.join()  # an item that no get returned needs no task_done


class Mute(Exception):
    """One that cannot be shown."""

    def __str__(self):
        raise RuntimeError("this one is mute")


def raise_mute():
    raise Mute


class ExplodesMutely:
    def __reduce__(self):
        return raise_mute, ()


def test_an_item_whose_error_cannot_be_shown_is_set_aside_too(url, name):
    q = Queue(name=name, url=url)
    q.put(ExplodesMutely())
    q.put("good")
    with pytest.raises(pressure_mp.DecodingError, match="an exception whose text raises another"):
        q.get()
    assert q.get() == "good"
    assert len(q.rejected()) == 1


def test_foreign_bytes_are_a_decoding_error(url, name):
    q = Queue(name=name, url=url)
    q.open()
    PressureQueue(name, url=url).put(b"no pickle")
    with pytest.raises(pressure_mp.DecodingError):
        q.get()
    assert q.rejected() == [b"no pickle"]


@pytest.mark.parametrize(
    ("serializer", "item", "payload"),
    [
        ("pickle", {"a": 1}, pickle.dumps({"a": 1}, 5)),
        ("json", {"a": [1, "é"]}, '{"a":[1,"é"]}'.encode()),
        ("text", "é", "é".encode()),
        ("raw", b"\0\xff", b"\0\xff"),
    ],
)
def test_each_serializer_writes_what_its_name_says(url, name, serializer, item, payload):
    q = Queue(name=name, url=url, serializer=serializer)
    q.put(item)
    q.put(item)
    assert PressureQueue(name, url=url).get() == payload
    assert pickle.loads(pickle.dumps(q)).get() == item


def test_any_object_with_dumps_and_loads_is_a_serializer(url, name):
    class Upper:
        @staticmethod
        def dumps(item):
            return json.dumps(item).upper().encode()

        loads = staticmethod(json.loads)

    q = Queue(name=name, url=url, serializer=Upper())
    q.put("abc")
    assert q.get() == "ABC"


@pytest.mark.parametrize("serializer", ["yaml", object()])
def test_an_argument_that_is_no_serializer_is_an_error(serializer, url):
    with pytest.raises(pressure_mp.PressureError, match="serializer"):
        Queue(url=url, serializer=serializer)


def test_a_serializer_that_does_not_make_bytes_is_an_error(url, name):
    q = Queue(name=name, url=url, serializer=json)
    with pytest.raises(pressure_mp.EncodingError, match="not bytes"):
        q.put(1)
    assert q.empty()


@pytest.mark.parametrize(
    ("part", "operations"),
    [
        ("", ["put", "get", "length", "stats"]),
        (":bound", ["put", "get", "stats"]),
        (":producer_free", ["put_to_full", "close"]),
        (":consumer_free", ["get_from_empty"]),
        (":not_full", ["put_to_full"]),
        (":stats:produced_messages", ["put", "stats"]),
        (":stats:produced_bytes", ["put"]),
        (":stats:consumed_messages", ["get"]),
        (":stats:consumed_bytes", ["get"]),
    ],
)
@pytest.mark.usefixtures("no_looks")
def test_a_key_of_the_wrong_type_is_named_and_nothing_is_half_done(server, name, part, operations):
    client = server.client()
    q = PressureQueue(name, url=server.url)
    q.create(2)
    q.put(b"1")
    q.get()
    q.put(b"2")
    # An operation that does not wait looks only at the keys that it needs.
    if "put_to_full" in operations:
        q.put(b"3")
    if "get_from_empty" in operations:
        q.get()
    key = f"__pressure__:{name}{part}"
    client.delete(key)
    client.hset(key, "a", "b")
    before = dump(client, name)
    calls = {"put": lambda: q.put(b"4", 0.1), "get": lambda: q.get(0.1)}
    for operation in operations:
        with pytest.raises(pressure_mp.WrongKeyTypeError, match=f"{key}' is a hash"):
            (calls.get(operation[:3]) or getattr(q, operation))()
        assert dump(client, name) == before, operation
    client.delete(*before)
    client.close()


def dump(client, name):
    """All that is kept of a queue."""
    return {key: client.dump(key) for key in lasting(client, f"__pressure__:{name}*")}


def test_a_counter_that_is_no_number_is_named_and_nothing_is_half_done(server, name):
    client = server.client()
    q = PressureQueue(name, url=server.url)
    q.create()
    q.put(b"1")
    client.set(f"__pressure__:{name}:stats:produced_bytes", "many")
    with pytest.raises(pressure_mp.WrongKeyTypeError, match="produced_bytes' holds b'many'"):
        q.put(b"2")
    assert q.length() == 1
    assert client.get(f"__pressure__:{name}:stats:produced_messages") == b"1"
    client.delete(*client.scan_iter(match=f"__pressure__:{name}*"))
    client.close()


@pytest.mark.parametrize("bound", [b"many", b"-5", b"1.5", b"", b"0x10", b" 1", b"9" * 301])
@pytest.mark.usefixtures("no_looks")
def test_a_bound_that_is_no_number_is_named_and_nothing_is_done(server, name, bound):
    client = server.client()
    q = PressureQueue(name, url=server.url)
    tasks = pressure_mp.Queue(5, name, url=server.url, serializer="raw")
    tasks.open()
    q.put(b"1")
    key = f"__pressure__:{name}:bound"
    client.set(key, bound)
    keys = sorted(client.scan_iter(match=f"__pressure__:{name}*"))
    before = {key: client.dump(key) for key in keys}
    for operation in (
        *(lambda: q.put(b"2"), lambda: q.put_nowait(b"2"), q.get, q.get_nowait, q.close),
        *(q.length, q.closed, q.stats, q.why_blocked, lambda: q.unlock("producer")),
        *(tasks.task_done, tasks.join, tasks.rejected, tasks.shutdown, q.create),
        lambda: pressure_mp.Queue(name=name, url=server.url).open(),
    ):
        with pytest.raises(pressure_mp.WrongKeyTypeError, match=f"{key}' holds b'.*set it right"):
            operation()
        assert {key: client.dump(key) for key in keys} == before
    assert q.exists()
    tasks.maxsize = 5
    q.put(b"2")
    client.set(key, bound)
    q.delete()
    assert not list(client.scan_iter(match=f"*{name}*"))
    client.close()


@pytest.mark.parametrize("kind", engines.kinds(Can.PROTOCOL))
def test_an_item_over_the_servers_limit_is_refused_and_the_queue_goes_on(kind, name):
    server = Server(kind, ("--proto-max-bulk-len", "1mb"))
    try:
        q = Queue(name=name, url=server.start().url, serializer="raw")
        with pytest.raises(pressure_mp.ItemTooLargeError, match=f"3000000 bytes.*{name}"):
            q.put(b"x" * 3_000_000)
        assert q.empty()
        q.put(b"small")
        assert q.get() == b"small"
    finally:
        server.stop()


@pytest.mark.parametrize("kind", engines.kinds(Can.PROTOCOL))
def test_a_full_server_refuses_puts_and_still_gives_out_items(kind, name):
    server = Server(kind)
    try:
        q = Queue(name=name, url=server.start().url, serializer="raw")
        q.put(b"x")
        client = server.client()
        client.config_set("maxmemory", 1)
        with pytest.raises(pressure_mp.BrokerFull, match="OOM"):
            q.put(b"y")
        assert q.stats().produced_messages == 1
        assert q.get() == b"x"
        client.config_set("maxmemory", 0)
        client.close()
        q.put(b"z")
        assert q.get() == b"z"
    finally:
        server.stop()


@pytest.mark.only_threads("it uses no queue of the test's world")
def test_a_server_that_is_too_old_is_refused_with_its_version():
    from pressure_mp.engines.redis.address import RedisAddress
    from pressure_mp.engines.redis.connecting import check_greeting

    address = RedisAddress("redis", "127.0.0.1", 6379)
    with pytest.raises(pressure_mp.UnsupportedServerError, match=r"6\.0\.16.*needs Redis 6\.2"):
        check_greeting([b"version", b"6.0.16", b"id", 3], address)
    assert check_greeting([b"version", b"6.2.0", b"id", 3], address)[b"id"] == 3
    with pytest.raises(pressure_mp.UnsupportedServerError, match=r"older than 6\.0"):
        check_greeting(Exception("ERR unknown command `HELLO`"), address)


@pytest.fixture
def pipe_end():
    ours, theirs = multiprocessing.Pipe()
    yield theirs
    ours.close()
    theirs.close()


class Holder:
    def __init__(self, held):
        self.held = held


_WITH_ONE = {
    "alone": lambda end: end,
    "inside": lambda end: [1, {"of": (end, end)}],
    "beside its class": lambda end: Holder([type(end), end]),
    "behind the name of its module": lambda end: ["multiprocessing.connection", "-" * 99_999, end],
    "large": lambda end: [bytearray(1 << 20), end],
}


@pytest.mark.parametrize("serializer", ["pickle", "module", "cloudpickle"])
@pytest.mark.parametrize("kind", [Queue, JoinableQueue, pressure_mp.TaskQueue])
def test_the_end_of_a_pipe_is_refused_wherever_it_is_in_an_item(
    kind, serializer, url, name, pipe_end
):
    if serializer == "cloudpickle":
        serializer = pytest.importorskip("cloudpickle")
    q = kind(name=name, url=url, serializer=pickle if serializer == "module" else serializer)
    refused = f"{name}.*end of a pipe, multiprocessing.connection.Connection.*Send a queue instead"
    for wrap in _WITH_ONE.values():
        for put in (q.put, lambda item: q.put_many([1, item, 2])):
            with pytest.raises(pressure_mp.EncodingError, match=refused):
                put(wrap(pipe_end))
    assert q.qsize() == 0
    q.delete()


def test_an_item_that_only_names_the_end_of_a_pipe_is_put_and_got(url, name):
    text = "multiprocessing.connection.Connection"
    found = [
        multiprocessing.connection.wait,
        multiprocessing.connection.Connection,
        [text, text.encode()],
        {"multiprocessing.connection": "Connection"},
    ]
    with Queue(name=name, url=url) as q:
        q.put_many(found)
        for item in found:
            q.put(item)
        assert q.get_many(8) == 2 * found
        q.delete()
    for serializer in ("text", "json", "raw"):
        with Queue(name=name, url=url, serializer=serializer) as q:
            item = text.encode() if serializer == "raw" else text
            q.put(item)
            assert q.get() == item
            q.delete()
