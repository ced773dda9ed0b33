"""Traces for OpenTelemetry (``pip install 'pressure_mp[otel]'``).

After :func:`instrument` each put makes a span. Each get and take makes a span too, with a link to
the span of the put. A worker's handler runs in a span that is a child of the put's span. Names come
from the semantic conventions for messaging
(https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from .. import events
from .._version import __version__
from ..events import Destination, Message

#: What this thread, or this task of asyncio, received last, for :func:`processing`.
_received: ContextVar[tuple[Destination, Sequence[Message]] | None] = ContextVar(
    "pressure_mp received", default=None
)


def instrument(
    *, tracer_provider: TracerProvider | None = None, propagator: TextMapPropagator | None = None
) -> None:
    """Trace all queues of this process, those for threads and those for asyncio.

    A second call replaces the arguments of the first.

    :param tracer_provider: makes the spans; else the global one.
    :param propagator: writes the context of a put into the headers of its items, and reads it; else
        the global one, by default ``traceparent``, ``tracestate`` and baggage (W3C).

    Headers are sent with an item, in an envelope that consumers with this package remove, whether
    they trace or not. Items of a :class:`pressure_mp.PressureQueue` have no headers; nor have items
    of a first-in, first-out queue that is not signed and has another serializer than pickle,
    because programs in other languages may get them.

    Does not block or raise. It is only for this process: other processes must call it themselves.
    """
    global _tracing
    uninstrument()
    tracer = trace.get_tracer("pressure_mp", __version__, tracer_provider)
    _tracing = _Tracing(tracer, propagator or propagate.get_global_textmap())
    events.listen(_tracing)


def uninstrument() -> None:
    """Stop tracing. Spans that have begun are still ended and exported. Does not block."""
    global _tracing
    if _tracing is not None:
        events.ignore(_tracing)
        _tracing = None


@contextmanager
def processing() -> Iterator[None]:
    """Make a span for the work on the items that this thread, or asyncio task, got last.

    These are one item, or all items of one :meth:`~pressure_mp.Queue.get_many`; with ``prefetch``,
    the last of them. The span is the current one within the ``with`` block.

    For tasks, ``with task:`` and a worker's handler have such a span already. Without
    :func:`instrument`, or before the first get, this does nothing.
    """
    received = _received.get()
    if _tracing is None or received is None:
        yield
        return
    with _tracing.process(*received):
        yield


class _Tracing:
    """Makes spans of what :mod:`.events` tells."""

    def __init__(self, tracer: trace.Tracer, propagator: TextMapPropagator) -> None:
        self._tracer = tracer
        self._propagator = propagator

    @contextmanager
    def sending(self, to: Destination, number: int) -> Iterator[Mapping[str, str]]:
        """Make the span of a put. It is not the current one: no code of the program runs in it."""
        span = self._start(SpanKind.PRODUCER, "put", "send", to, number=number)
        try:
            yield self._headers(span)
        except BaseException as error:
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
            raise
        finally:
            span.end()

    def created(self, to: Destination) -> Mapping[str, str]:
        """Make the span of an item that is sent later, by a thread that sends many together."""
        span = self._start(SpanKind.PRODUCER, "put", "create", to)
        span.end()
        return self._headers(span)

    def received(self, source: Destination, messages: Sequence[Message], since: int) -> None:
        """Make the span of messages; it began when they were asked for."""
        _received.set((source, messages))
        name = "take" if source.discipline == "tasks" else "get"
        self._start(SpanKind.CLIENT, name, "receive", source, messages, since=since).end()

    def settled(
        self, source: Destination, verb: str, messages: Sequence[Message], since: int
    ) -> None:
        """Make the span of an acknowledgement, release or burial."""
        self._start(SpanKind.CLIENT, verb, "settle", source, messages, since=since).end()

    def processing(self, source: Destination, message: Message) -> AbstractContextManager[None]:
        """Make the span of a handler, which is the current one while it runs."""
        return self.process(source, [message])

    @contextmanager
    def process(self, source: Destination, messages: Sequence[Message]) -> Iterator[None]:
        """Make the span of work on several messages. With one, the span's context is the
        message's."""
        one = messages[0] if len(messages) == 1 else None
        outer = self._propagator.extract(one.headers) if one else context.get_current()
        token = context.attach(outer)
        try:
            span = self._start(SpanKind.CONSUMER, "process", "process", source, messages)
            with trace.use_span(span, end_on_exit=True):
                try:
                    yield
                except Exception as error:
                    span.set_attribute("error.type", type(error).__qualname__)
                    raise
        finally:
            context.detach(token)

    def _start(
        self,
        kind: SpanKind,
        name: str,
        type_: str,
        queue: Destination,
        messages: Sequence[Message] = (),
        number: int = 1,
        since: int | None = None,
    ) -> Span:
        """Start a span of messages, with links to the spans that put them; or of a ``number`` of
        items that are put."""
        number = len(messages) or number
        attributes: dict[str, Any] = {
            "messaging.system": "pressure_mp",
            "messaging.operation.name": name,
            "messaging.operation.type": type_,
            "messaging.destination.name": queue.name,
        }
        if queue.server is not None:
            attributes["server.address"] = queue.server.address
            if queue.server.port is not None:
                attributes["server.port"] = queue.server.port
        if queue.is_anonymous:
            attributes["messaging.destination.anonymous"] = True
            attributes["messaging.destination.temporary"] = True
        if number > 1:
            attributes["messaging.batch.message_count"] = number
        if len(messages) == 1 and messages[0].id is not None:
            attributes["messaging.message.id"] = str(messages[0].id)
        name = f"{name} {'(anonymous)' if queue.is_anonymous else queue.name}"
        return self._tracer.start_span(name, None, kind, attributes, self._links(messages), since)

    def _headers(self, span: Span) -> dict[str, str]:
        """Return the headers that tell consumers of a put of its span."""
        headers: dict[str, str] = {}
        self._propagator.inject(headers, trace.set_span_in_context(span))
        return headers

    def _links(self, messages: Sequence[Message]) -> list[Link]:
        """Return links to the spans that put these messages, each once."""
        found: dict[tuple[int, int], Link] = {}
        for message in messages:
            if message.headers:
                outer = self._propagator.extract(message.headers, Context())
                put = trace.get_current_span(outer).get_span_context()
                if put.is_valid:
                    found.setdefault((put.trace_id, put.span_id), Link(put))
        return list(found.values())


_tracing: _Tracing | None = None
