"""Spans, as the OpenTelemetry SDK exports them, for tests and for programs that they start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from pressure_mp import Queue
from pressure_mp.telemetry import otel


class Spans:
    """What was exported so far."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def tracer(self) -> Tracer:
        """For spans of the program itself."""
        return self.provider.get_tracer("the program")

    def of(self, kind: str) -> list[ReadableSpan]:
        """The spans of a type of operation, in the order in which they ended."""
        return [span for span in self._exporter.get_finished_spans() if operation(span) == kind]

    def one(self, kind: str) -> ReadableSpan:
        """The only one of that type."""
        (found,) = self.of(kind)
        return found


def operation(span: ReadableSpan) -> Any:
    """The type of operation that a span is of; its name, if it is none of this package."""
    return (span.attributes or {}).get("messaging.operation.type", span.name)


@contextmanager
def traced() -> Iterator[Spans]:
    """All queues of this process are traced in the block."""
    spans = Spans()
    otel.instrument(tracer_provider=spans.provider)
    try:
        yield spans
    finally:
        otel.uninstrument()


def put_within_a_span(url: str, name: str, answer: Any) -> None:
    """A producer: it puts within a span of its own, and answers with the ids of the put's."""
    with traced() as spans, spans.tracer.start_as_current_span("the producer"):
        Queue(name=name, url=url).put("from another process")
        context = spans.one("send").get_span_context()
        answer.send((context.trace_id, context.span_id))
