"""The commands put and get, which stand at the ends of pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click

from .. import LifoQueue, Queue, ShutDown, TaskQueue
from ..authentication import AuthenticationError
from ..encoding.display import content_of
from ..exceptions import PressureError, QueueDoesNotExistError
from ..operations.control import FIFO
from ..operations.phrases import some
from ..operations.task_queue import TASKS
from ..sync.forwarding import Forwarder, NextIsLarge
from . import statuses
from .broker import Broker, Named, with_broker
from .completion import queue_name
from .output import at_most, seconds, turns
from .output_reader import Reader, reader_of_output

#: Bytes that one read or write has at most; items that one put has.
_READ = _WRITE = 1 << 18
_BATCH = 1000
#: Seconds between two tries to find a queue.
_INTERVAL = 0.1
_KINDS = {FIFO: Queue, "lifo": LifoQueue}


@with_broker
@queue_name()
@click.option("-0", "null", is_flag=True, help="Items end with a zero byte, not with a newline.")
@click.option(
    "--json",
    "in_json",
    is_flag=True,
    help="Each item must be JSON; the command ends with status 1 at the first that is not.",
)
@click.option(
    "--raw-chunks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cut the input into items of N bytes each, not into lines; the last may be shorter.",
)
@click.option(
    "--maxsize",
    type=click.IntRange(min=0),
    help="How many items the queue holds, if it is created; an existing queue must have this "
    "bound. 0: no bound, and an existing queue may have any.",
)
@click.option("--shutdown", is_flag=True, help="Shut the queue down at the end of the input.")
@click.option(
    "--unique",
    metavar="KEY",
    help="Put a line, into a queue of tasks, only if no task with this key is ready, waiting or "
    "taken.",
)
def put(
    name: str,
    null: bool,
    in_json: bool,
    raw_chunks: int | None,
    maxsize: int | None,
    shutdown: bool,
    unique: str | None,
    broker: Broker,
) -> None:
    """Put each line of the standard input into the queue NAME.

    The queue is created if it does not exist. While it is full, the command waits, without limit,
    and reads no input. Python programs get the lines with serializer="text", or "json". In a queue
    of tasks each line is a task; a priority or fair queue is refused. Items are signed with
    PRESSURE_AUTHKEY, if that is set.
    """
    if null and raw_chunks:
        raise click.UsageError("-0 and --raw-chunks exclude each other: both say where items end")
    if unique is not None and broker.find(name).discipline != TASKS:
        raise click.ClickException(f"{name!r} is no queue of tasks: leave out --unique")
    queue = _open_to_put(broker, name, maxsize)
    queue.open()
    if raw_chunks:
        batches = _read(partial(_chunks, size=raw_chunks), max(_READ, raw_chunks))
    else:
        end = b"\0" if null else b"\n"
        batches = _read(lambda data: data.split(end))
    if in_json:
        batches = _only_json(batches)
    number = 0
    with queue:
        try:
            for batch in batches:
                if isinstance(queue, TaskQueue) and unique is not None:
                    queue.put_many(batch, unique=[unique] * len(batch))
                else:
                    queue.put_many(batch)
                number += len(batch)
        except _NotJson as error:
            raise click.ClickException(
                f"{error}; before it, {some(number, 'item')} went in"
            ) from error
        except PressureError as error:
            raise click.ClickException(
                f"{error}; {number + error.accepted} items of the input were put"
            ) from error
        if shutdown:
            queue.shutdown()


def _open_to_put(broker: Broker, name: str, maxsize: int | None) -> Queue[bytes] | TaskQueue[bytes]:
    options = {**broker.options, "serializer": "raw"}
    if not broker.exists(name):
        return Queue(maxsize or 0, name, buffering=0, **options)
    discipline = broker.find(name).discipline
    if discipline == TASKS:
        stated: dict[str, Any] = {"maxsize": maxsize, "strict": True} if maxsize else {}
        return TaskQueue.attach(name, **stated, **options)
    kind = _KINDS.get(discipline)
    if kind is None:
        raise click.ClickException(
            f"queue {name!r} has the discipline {discipline}: put items there with Python, because "
            "a line alone does not tell its priority or key"
        )
    return kind(maxsize or 0, name, buffering=0, **options)


def _read(cut: Callable[[bytes], list[bytes]], most: int = _READ) -> Iterator[list[bytes]]:
    """Read the items of the input, as soon as they are there, in batches. Of the parts that ``cut``
    makes the last is the beginning of an item."""
    rest = b""
    while read := os.read(sys.stdin.fileno(), most):
        *whole, rest = cut(rest + read)
        for first in range(0, len(whole), _BATCH):
            yield whole[first : first + _BATCH]
    if rest:
        yield [rest]


def _chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data) + 1, size)]


class _NotJson(Exception):
    """A line is not JSON."""


def _only_json(batches: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Iterate over the lines before a line that is not JSON; then raise _NotJson."""
    import json

    before = 0
    for batch in batches:
        for place, line in enumerate(batch):
            try:
                json.loads(line)
            except ValueError as error:
                yield batch[:place]
                raise _NotJson(f"line {before + place + 1} is not JSON: {error}") from None
        yield batch
        before += len(batch)


@with_broker
@queue_name()
@at_most("End after this many items.")
@seconds(
    "--timeout",
    "End with status 3 when no item came for this time, with 4 when there was no queue. 0 "
    "takes the items that are queued now. Without it, wait without limit.",
)
@click.option(
    "-0", "null", is_flag=True, help="End each item with a zero byte, not with a newline."
)
@click.option("--raw", is_flag=True, help="Write the items' bytes with nothing between them.")
def get(
    name: str, limit: int | None, timeout: float | None, null: bool, raw: bool, broker: Broker
) -> None:
    """Write each item of the queue NAME to the standard output, until it is shut down and empty.

    If there is no queue of this name yet, the command waits until one is created. An item leaves
    the queue when it is written. When the program that reads the output ends, and at Ctrl-C, items
    that were not written go back to the front of the queue. A pickle of simple values (numbers,
    lists, dicts) is written as JSON, and a pickled str as its text. An item that cannot be
    written, such as any other pickle, stays in the queue and ends the command. Tasks are for
    workers: a queue of tasks is refused.
    """
    if null and raw:
        raise click.UsageError("-0 and --raw exclude each other: with --raw items have no end")
    end = b"" if raw else b"\0" if null else b"\n"
    with reader_of_output() as reader:
        queue = _wait_for(broker, name, timeout)
        with Forwarder(queue.name, queue.items.discipline, broker.options) as source:
            writer = _Writer(source, end, reader)
            try:
                while limit is None or writer.number < limit:
                    left = None if limit is None else limit - writer.number
                    source.forward(writer.write, left, timeout)
                    writer.check()
            except ShutDown:
                pass
            except NextIsLarge as error:
                raise click.ClickException(str(error)) from None


def _wait_for(broker: Broker, name: str, timeout: float | None) -> Named:
    """Wait for the queue of that name. Raises QueueDoesNotExistError."""
    for _ in turns(_INTERVAL, timeout, lambda: f"There is no queue {name!r} yet: waiting for it."):
        try:
            return broker.find(name)
        except QueueDoesNotExistError as error:
            missing = error
    raise missing


class _Writer:
    """Writes items to the standard output, and counts them."""

    def __init__(self, source: Forwarder, end: bytes, reader: Reader) -> None:
        self._source = source
        self._end = end
        self._reader = reader
        self._out = sys.stdout.fileno()
        self._problem: BaseException | None = None
        self.number = 0

    def write(self, items: list[bytes]) -> int:
        """Write items; return how many are written to the end."""
        self._reader.begin_writing()
        lines = items if self._source.are_plain(items) else self._decoded(items)
        written = self._write_all(lines)
        self.number += written
        return written

    def _decoded(self, items: list[bytes]) -> list[bytes]:
        """Return the lines of the first items, up to an item that cannot be written."""
        lines: list[bytes] = []
        try:
            for item in items:
                lines.append(self._line(item))
        except AuthenticationError:
            self._problem = click.ClickException(
                "the next item stays in the queue: it is signed with no key in PRESSURE_AUTHKEY. "
                "`pressure-mp peek` shows it, with the id of its key"
            )
        except ValueError as error:
            self._problem = click.ClickException(
                f"the next item stays in the queue: {error}. `pressure-mp peek` shows it"
            )
        return lines

    def _line(self, item: bytes) -> bytes:
        payload = self._source.check(item)
        if payload[:1] != b"\x80" and payload[:1] != b"\xfa":
            return payload
        return content_of(payload).line

    def _write_all(self, lines: list[bytes]) -> int:
        """Write lines; return how many are written, also if the reader ends or an interrupt comes
        meanwhile."""
        text = memoryview(self._end.join([*lines, b""]))
        at = 0
        try:
            while at < len(text):
                at += os.write(self._out, text[at : at + _WRITE])
        except BaseException as error:
            self._problem = error
        return len(lines) if at == len(text) else _number_of(lines, len(self._end), at)

    def check(self) -> None:
        problem, self._problem = self._problem, None
        if isinstance(problem, BrokenPipeError):
            sys.exit(statuses.READER_GONE)
        if problem is not None:
            raise problem
        self._reader.check()


def _number_of(lines: list[bytes], end: int, size: int) -> int:
    """Count the lines, each with its end, that are whole in so many bytes."""
    for number, line in enumerate(lines):
        size -= len(line) + end
        if size < 0:
            return number
    return len(lines)
