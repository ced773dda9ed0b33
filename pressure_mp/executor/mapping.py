"""``map`` of an executor: the standard library's, with a bound on how far it reads ahead."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, TimeoutError, wait
from typing import Any

from ..numeric import integer

#: Returns the function that submits one call, as long as the executor exists. An unfinished
#: iterator does not keep the executor.
Submit = Callable[[], "Callable[..., Future[Any]] | None"]


def check(chunksize: int, buffersize: int | None) -> None:
    """Raise ArgumentError, ArgumentTypeError, as the standard library raises ValueError and
    TypeError."""
    integer("chunksize", chunksize, 1)
    if buffersize is not None:
        integer("buffersize", buffersize, 1, "an int or None")


def results(
    submit: Submit,
    fn: Callable[..., Any],
    inputs: Iterator[tuple[Any, ...]],
    timeout: float | None,
    chunksize: int,
    buffersize: int | None,
    unordered: bool,
) -> Iterator[Any]:
    """Submit the calls, all of them or the first ``buffersize``, at once; return an iterator of
    their results, which submits the rest.

    As in Python 3.14, the buffer is counted in chunks when these are larger than 1.
    """
    end = None if timeout is None else timeout + time.monotonic()
    if chunksize == 1:
        calls: Iterator[tuple[Any, ...]] = ((fn, *args) for args in inputs)
    else:
        calls = ((run_chunk, fn, chunk) for chunk in _chunks(inputs, chunksize))
    first = calls if buffersize is None else itertools.islice(calls, buffersize)
    pending: deque[Future[Any]] = deque()
    for call in first:
        _submit_next(submit, iter((call,)), pending.append)
    rest = calls if buffersize is not None else iter(())
    order = _unordered if unordered else _ordered
    found = order(submit, pending, rest, end)
    return found if chunksize == 1 else _flat(found)


def run_chunk(fn: Callable[..., Any], chunk: list[tuple[Any, ...]]) -> list[Any]:
    """Do the calls of one chunk, one after the other; in a worker."""
    return [fn(*args) for args in chunk]


def _chunks(inputs: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(itertools.islice(inputs, size)):
        yield chunk


def _flat(chunks: Iterable[list[Any]]) -> Iterator[Any]:
    """Iterate over the results of all chunks, without a reference to a result that was handed
    out."""
    for chunk in chunks:
        chunk.reverse()
        while chunk:
            yield chunk.pop()


def _ordered(
    submit: Submit, pending: deque[Future[Any]], rest: Iterator[tuple[Any, ...]], end: float | None
) -> Iterator[Any]:
    try:
        pending.reverse()  # done futures are taken from its end, as the standard library does
        while pending:
            _submit_next(submit, rest, pending.appendleft)
            yield _result(pending.pop(), end)
    finally:
        _cancel(pending)


def _unordered(
    submit: Submit,
    pending: deque[Future[Any]],
    rest: Iterator[tuple[Any, ...]],
    end: float | None,
) -> Iterator[Any]:
    waiting = set(pending)
    pending.clear()
    try:
        while waiting:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            done = wait(waiting, left, FIRST_COMPLETED).done
            if not done:
                raise TimeoutError
            waiting -= done
            while done:
                _submit_next(submit, rest, waiting.add)
                yield _result(done.pop(), end)
    finally:
        _cancel(waiting)


def _submit_next(
    submit: Submit, rest: Iterator[tuple[Any, ...]], add: Callable[[Future[Any]], None]
) -> None:
    """Submit one more call for each result that is handed out, while there are inputs."""
    there = submit()
    if there is not None:
        for call in itertools.islice(rest, 1):
            add(there(*call))


def _result(future: Future[Any], end: float | None) -> Any:
    """Return the result of a future; no frame keeps the future."""
    try:
        try:
            return future.result(None if end is None else end - time.monotonic())
        finally:
            future.cancel()
    finally:
        del future


def _cancel(futures: Iterable[Future[Any]]) -> None:
    """Cancel the rest: the iterator was closed, or one of the calls failed."""
    for future in futures:
        future.cancel()
