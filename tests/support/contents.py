"""Large items in the tests: what there is of their contents, and processes that stop half-way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import engines
import inside

from pressure_mp.encoding.large import CHUNK, Large, divide
from pressure_mp.operations import large


def sample(chunks: int = 2) -> Large:
    """An item of no queue in particular."""
    return Large([memoryview(b"x" * CHUNK * chunks)], bytes, is_signed=False)


def count_chunks(q: Any) -> int:
    """How many chunks the queue's broker has."""
    return _count(q, "chunks")


def count_uploads(q: Any) -> int:
    """How many contents the queue's broker keeps for a time, or while they are queued."""
    return _count(q, "uploads")


def _count(q: Any, what: str) -> int:
    engine = inside.engine(q)
    return engines.of(engine.address.url).broker.contents(engine, q, what)


@contextmanager
def before_each_chunk(call: Callable[[int], Any]) -> Iterator[None]:
    """While this context lasts, ``call`` is called with the number of each chunk that is next; each
    goes in a request of its own."""

    def dividing(segments: Sequence[memoryview]) -> Iterator[list[memoryview]]:
        for number, chunk in enumerate(divide(segments)):
            call(number)
            yield chunk

    with mock.patch.multiple(large, divide=dividing, MOST_CHUNKS=1):
        yield


def stop_at(number: int, reached: Any) -> Any:
    """The process goes no further than to this chunk, and says when it is there."""

    def stop(at: int) -> None:
        if at == number:
            reached.set()
            time.sleep(600)

    return before_each_chunk(stop)


def put_and_stop(q: Any, item: Any, number: int, reached: Any) -> None:
    with stop_at(number, reached):
        q.put(item)


def get_and_stop(q: Any, number: int, reached: Any) -> None:
    with stop_at(number, reached):
        q.get()


def get_and_wait(q: Any, reached: Any) -> None:
    q.get()
    reached.set()
    time.sleep(600)
