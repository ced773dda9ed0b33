"""Traces of puts and gets, as OpenTelemetry's SDK exports them, at every kind of broker."""

from __future__ import annotations

import asyncio
import threading
from urllib.parse import urlsplit

import engines
import pytest
import traces
from engines import Can
from opentelemetry import trace
from opentelemetry.propagate import get_global_textmap
from opentelemetry.trace import SpanKind, StatusCode
from started import quickly
from waiting import LIMIT

import pressure_mp
from pressure_mp import (
    AuthenticationError,
    Full,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    TaskDoneError,
    TaskNotFound,
    TaskQueue,
    aio,
)
from pressure_mp.encoding import envelope
from pressure_mp.encoding.display import content_of
from pressure_mp.telemetry import otel

#: More bytes than an item has that is not divided.
LARGE = 1 << 19


@pytest.fixture
def spans():
    with traces.traced() as found:
        yield found


def linked(span):
    return [link.context.span_id for link in span.links]


def server(url):
    """The attributes of the server, if there is one."""
    parts = urlsplit(url)
    if not engines.of(url).can(Can.SERVER):
        return {}
    return {"server.address": parts.hostname, "server.port": parts.port}


def span_id(span):
    return span.get_span_context().span_id


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("kind", [Queue, JoinableQueue, LifoQueue])
def test_a_get_is_linked_to_its_put(url, name, kind, spans):
    q = kind(name=name, url=url)
    q.put({"some": "thing"})
    assert q.get() == {"some": "thing"}
    put, got = spans.one("send"), spans.one("receive")
    assert (put.name, put.kind) == (f"put {name}", SpanKind.PRODUCER)
    assert (got.name, got.kind) == (f"get {name}", SpanKind.CLIENT)
    assert linked(got) == [span_id(put)]
    assert dict(got.attributes) == {
        "messaging.system": "pressure_mp",
        "messaging.operation.name": "get",
        "messaging.operation.type": "receive",
        "messaging.destination.name": name,
        **server(url),
    }
    assert server(url).items() <= put.attributes.items()
    assert put.start_time <= put.end_time <= got.end_time


@pytest.mark.usefixtures("world")
def test_a_batch_is_one_span(url, name, spans):
    q = Queue(name=name, url=url)
    q.put_many(range(5))
    q.put("alone")
    assert q.get_many(10) == [0, 1, 2, 3, 4, "alone"]
    batch, alone = spans.of("send")
    received = spans.one("receive")
    assert linked(received) == [span_id(batch), span_id(alone)]
    counts = [span.attributes.get("messaging.batch.message_count") for span in (batch, alone)]
    assert (counts, received.attributes["messaging.batch.message_count"]) == ([5, None], 6)


@pytest.mark.usefixtures("world")
def test_an_item_that_is_sent_later_has_a_span_when_it_is_put(valkey, spans):
    q = Queue(url=valkey.url)  # an anonymous one has buffers
    q.put(1)
    q.put("x" * LARGE)
    assert (q.get(), len(q.get())) == (1, LARGE)
    created, received = spans.of("create")[0], spans.of("receive")[0]
    assert (created.name, created.kind) == ("put (anonymous)", SpanKind.PRODUCER)
    assert created.attributes["messaging.destination.anonymous"] is True
    assert linked(received) == [span_id(created)]
    assert len(spans.of("receive")) == 2
    assert all(map(linked, spans.of("receive")))


def test_a_put_that_fails_says_why(url, name, spans):
    q = Queue(1, name, url=url)
    q.put(1)
    with pytest.raises(Full):
        q.put(2, block=False)
    failed = spans.of("send")[1]
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"] == "Full"


@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_prefetched_item_is_received_when_get_returns_it(valkey, name, spans, kind):
    q = kind(name=name, url=valkey.url, prefetch=10)
    q.put_many([1, 2, 3])
    assert [q.get(), q.get()] == [1, 2]
    sent = [span_id(spans.one("send"))]
    assert [linked(one) for one in spans.of("receive")] == [sent, sent]
    if kind is JoinableQueue:
        q.task_done()
        assert linked(spans.one("settle")) == sent


def test_a_task_is_traced_from_its_put_through_its_block(url, name, spans):
    q = TaskQueue(name, url=url)
    with spans.tracer.start_as_current_span("the producer") as producer:
        id = q.put({"page": 1})
    q.put_many([2, 3])
    with pytest.raises(ZeroDivisionError), q.take():
        1 / 0  # noqa: B018
    single, many = spans.of("send")
    received, process = spans.one("receive"), spans.one("process")
    assert single.parent.span_id == span_id(producer)
    assert many.attributes["messaging.batch.message_count"] == 2
    assert (received.name, linked(received)) == (f"take {name}", [span_id(single)])
    assert (process.name, process.kind) == (f"process {name}", SpanKind.CONSUMER)
    assert (process.parent.span_id, linked(process)) == (span_id(single), [span_id(single)])
    assert process.attributes["messaging.message.id"] == str(id)
    assert process.attributes["error.type"] == "ZeroDivisionError"


def test_the_block_over_a_task_of_asyncio_is_traced(valkey, name, spans):
    async def main():
        async with aio.TaskQueue(name, url=valkey.url) as q:
            await q.put(1)
            async with await q.take():
                await asyncio.sleep(0)
                return trace.get_current_span().get_span_context().span_id

    inside, process = asyncio.run(main()), spans.one("process")
    assert inside == span_id(process)
    assert process.parent.span_id == span_id(spans.one("send"))


def test_each_call_that_settles_tasks_has_a_span(url, name, spans):
    q = TaskQueue(name, url=url, max_deliveries=9)
    ids = q.put_many([1, 2, 3, 4])
    q.take().release()
    q.take().bury()
    tasks = q.take_many(3)
    tasks[0].touch()
    tasks[0].ack()
    q.ack_many(tasks[1:])
    with pytest.raises(TaskNotFound):
        tasks[0].ack()
    settled = spans.of("settle")
    verbs = ["release", "bury", "ack", "ack"]
    assert [span.name for span in settled] == [f"{verb} {name}" for verb in verbs]
    assert {span.kind for span in settled} == {SpanKind.CLIENT}
    told = [span.attributes.get("messaging.message.id") for span in settled]
    assert told == [*map(str, [ids[0], ids[0], tasks[0].id]), None]
    assert settled[-1].attributes["messaging.batch.message_count"] == 2


@pytest.mark.usefixtures("world")
def test_an_item_that_is_dealt_with_is_linked_to_its_put(url, name, spans):
    q = JoinableQueue(name=name, url=url)
    q.put_many(["a", "b"])
    q.put("c")
    assert (q.get(), q.get_many(2)) == ("a", ["b", "c"])
    for _ in range(3):
        q.task_done()
    with pytest.raises(TaskDoneError):
        q.task_done()
    both, third = spans.of("send")
    settled = spans.of("settle")
    assert [span.name for span in settled] == [f"task_done {name}"] * 3
    assert [linked(span) for span in settled] == [*2 * [[span_id(both)]], [span_id(third)]]
    assert settled[0].kind == SpanKind.CLIENT
    assert server(url).items() <= settled[0].attributes.items()


def test_tasks_with_and_without_a_trace_are_taken_together(valkey, name):
    q = TaskQueue(name, url=valkey.url)
    q.put("before")
    with traces.traced() as spans:
        q.put("traced")
        before, traced = q.take_many(2)
        with traced:
            assert traced.data == "traced"
        with before:
            pass
        assert linked(spans.one("receive")) == [span_id(spans.one("send"))]
        assert [len(span.links) for span in spans.of("process")] == [1, 0]


def run_for_threads(url, name, handler):
    stop = threading.Event()

    def handle(task):
        handler()
        stop.set()

    TaskQueue(name, url=url).run(handle, stop=stop)


def run_for_asyncio(url, name, handler):
    async def main():
        stop = asyncio.Event()

        async def handle(task):
            await asyncio.sleep(0)
            handler()
            stop.set()

        async with aio.TaskQueue(name, url=url) as q:
            await asyncio.wait_for(q.run(handle, stop=stop), LIMIT)

    asyncio.run(main())


def run_in_threads_of_a_loop(url, name, handler):
    async def main():
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def handle(task):
            handler()
            loop.call_soon_threadsafe(stop.set)

        async with aio.TaskQueue(name, url=url) as q:
            await asyncio.wait_for(q.run(handle, stop=stop), LIMIT)

    asyncio.run(main())


@pytest.mark.parametrize(
    "run",
    [run_for_threads, run_for_asyncio, run_in_threads_of_a_loop],
    ids=lambda one: one.__name__,
)
def test_a_workers_handler_runs_in_a_span(valkey, name, run, spans):
    TaskQueue(name, url=valkey.url).put(1)
    inside = []
    run(valkey.url, name, lambda: inside.append(trace.get_current_span().get_span_context()))
    process, put = spans.one("process"), spans.one("send")
    assert [context.span_id for context in inside] == [span_id(process)]
    assert process.parent.span_id == span_id(put)
    assert not trace.get_current_span().get_span_context().is_valid


def double(number):
    return 2 * number


def test_a_call_of_an_executor_is_traced_where_it_is_put(valkey, spans):
    with pressure_mp.Executor(1, url=valkey.url) as executor:
        assert executor.submit(double, 4).result(LIMIT) == 8
    assert spans.one("send").kind is SpanKind.PRODUCER


def test_the_work_on_an_item_continues_its_trace(valkey, name, spans):
    q = Queue(name=name, url=valkey.url)
    q.put(1)
    q.get()
    with otel.processing():
        inside = trace.get_current_span().get_span_context().span_id
    assert not trace.get_current_span().get_span_context().is_valid
    process, put = spans.one("process"), spans.one("send")
    assert inside == span_id(process)
    assert (process.parent.span_id, linked(process)) == (span_id(put), [span_id(put)])

    async def in_asyncio():
        async with aio.Queue(name=name, url=valkey.url) as q:
            await q.put_many([2, 3])
            await q.get_many(2)
            with otel.processing():
                await asyncio.sleep(0)

    asyncio.run(in_asyncio())
    batch = spans.of("process")[1]
    assert batch.parent is None  # there is no one context to be in
    assert linked(batch) == [span_id(spans.of("send")[1])]


def test_the_context_crosses_processes(valkey, name, spans):
    here, there = quickly.Pipe()
    producer = quickly.Process(target=traces.put_within_a_span, args=(valkey.url, name, there))
    producer.start()
    assert Queue(name=name, url=valkey.url).get(timeout=LIMIT) == "from another process"
    with otel.processing():
        pass
    trace_id, put = here.recv()
    producer.join()
    assert linked(spans.one("receive")) == [put]
    process = spans.one("process")
    assert (process.parent.span_id, process.get_span_context().trace_id) == (put, trace_id)


@pytest.mark.parametrize("authkey", [None, b"secret"], ids=["unsigned", "signed"])
def test_a_consumer_that_does_not_trace_gets_what_was_put(url, name, authkey):
    q = Queue(name=name, url=url, authkey=authkey)
    tasks = TaskQueue(f"{name}-tasks", url=url, authkey=authkey, serializer="json")
    last = PriorityQueue(name=f"{name}-last", url=url, authkey=authkey, serializer="raw")
    with traces.traced():
        q.put("single")
        q.put_many(["many", "x" * LARGE])
        q.put_many([1, 2])
        tasks.put_many(["task", "tasks"])
        last.put(envelope.MARK)
    last.put(envelope.MARK + b"1234")
    assert q.peek(1) == ["single"]
    assert [len(q.get()) for _ in range(3)] == [6, 4, LARGE]
    q.put("without headers")
    assert q.get_many(3) == [1, 2, "without headers"]
    assert [task.data for task in tasks.take_many(2)] == ["task", "tasks"]
    assert [last.get(), last.get()] == [envelope.MARK, envelope.MARK + b"1234"]


@pytest.mark.parametrize("size", [0, 10_000])
def test_items_with_headers_that_are_read_ahead_come_back_as_they_went_in(valkey, size):
    q = Queue(url=valkey.url)
    items = [(number, "x" * size) for number in range(60)]
    with traces.traced():
        for item in items:
            q.put(item)
    assert [q.get(timeout=LIMIT) for _ in items] == items
    q.close()


def test_headers_are_beside_the_item_and_never_where_other_languages_read(valkey, name, spans):
    bare = Queue(name=name, url=valkey.url, serializer="json")
    pickled = Queue(name=f"{name}-pickled", url=valkey.url)
    bare.put({"a": 1})
    pickled.put("hello")
    assert PressureQueue(name, url=valkey.url).get() == b'{"a":1}'
    item = PressureQueue(f"{name}-pickled", url=valkey.url).get()
    assert envelope.payload_of(item).startswith(b"\x80")
    assert content_of(item).value == "hello"
    put = spans.of("send")[1].get_span_context()
    headers = envelope.headers_of(item)
    assert list(headers) == ["traceparent"]
    assert headers["traceparent"].startswith(f"00-{put.trace_id:032x}-{put.span_id:016x}-")


def test_the_headers_of_a_signed_item_are_signed_too(valkey, name, spans):
    q = Queue(name=name, url=valkey.url, authkey=b"secret")
    bare = PressureQueue(name, url=valkey.url)
    for item in ("small", "x" * LARGE):
        q.put(item)
        forged = bare.get().replace(b'"traceparent":"00-', b'"traceparent":"01-')
        bare.put(forged)
        with pytest.raises(AuthenticationError):
            q.get()


def test_nothing_is_traced_any_more(valkey, name, spans):
    q = Queue(name=name, url=valkey.url)
    otel.uninstrument()
    q.put(1)
    assert not envelope.headers_of(PressureQueue(name, url=valkey.url).get())
    q.put(2)
    assert q.get() == 2
    with otel.processing():
        assert not trace.get_current_span().get_span_context().is_valid
    assert not spans.of("send")


def test_an_item_carries_what_the_propagator_writes(valkey, name, spans):
    class Baggage:
        def inject(self, carrier, context=None):
            carrier["tenant"] = "blue"

        def extract(self, carrier, context=None):
            assert carrier == {"tenant": "blue"}
            return get_global_textmap().extract({}, context)

    otel.instrument(tracer_provider=spans.provider, propagator=Baggage())
    q = Queue(name=name, url=valkey.url)
    q.put(1)
    q.get()
    assert linked(spans.one("receive")) == []
