"""The work of the demos' processes: the stages of the pipeline, and the tenants and the worker of
the demo ``fair``. A process imports nothing else of the command.

The stages are written once and run on either kind of queue, pressure_mp's or multiprocessing's. So
they end the stream with a marker in it, since multiprocessing's queues cannot be shut down.
"""

from __future__ import annotations

import io
import keyword
import time
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

END = None
#: How many items wait between two stages at most.
DEPTH = 16


class AnyQueue(Protocol):
    """The methods of a queue that the processes need."""

    def put(self, item: Any, /) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> Any: ...

    def qsize(self) -> int: ...


class Counted(Protocol):
    """A number that processes share."""

    value: int


@dataclass
class Totals:
    """The counts; ``skipped`` of the ``files`` could not be read or tokenised."""

    files: int = 0
    skipped: int = 0
    tokens: int = 0
    identifiers: Counter[str] = field(default_factory=Counter)

    def add(self, other: Totals) -> None:
        self.files += other.files
        self.skipped += other.skipped
        self.tokens += other.tokens
        self.identifiers.update(other.identifiers)


_SKIPPED = Totals(files=1, skipped=1)


def read(files: list[list[Path]], sources: AnyQueue, workers: int) -> None:
    """Put the contents of each batch of files, and for each worker an end."""
    _put_all(([_contents(path) for path in batch] for batch in files), sources, workers)


def name(files: list[list[Path]], sources: AnyQueue, workers: int) -> None:
    """Put the names of each batch of files, and for each worker an end."""
    _put_all(files, sources, workers)


def _put_all(items: Iterable[Any], sources: AnyQueue, workers: int) -> None:
    for item in items:
        sources.put(item)
    for _ in range(workers):
        sources.put(END)


def tokenise(sources: AnyQueue, counts: AnyQueue) -> None:
    """Put what each batch contributes to the totals, until the end; then put an end."""
    while (batch := sources.get()) is not END:
        counted = Totals()
        for source in batch:
            counted.add(_count(source))
        counts.put(counted)
    counts.put(END)


def tokenise_named(sources: AnyQueue, counts: AnyQueue) -> None:
    """Tokenise as :func:`tokenise` does, for the names of files; for each file put every identifier
    with its number, and then the rest."""
    while (batch := sources.get()) is not END:
        for counted in [_count(_contents(path)) for path in batch]:
            for identifier in counted.identifiers.items():
                counts.put(identifier)
            counted.identifiers.clear()
            counts.put(counted)
    counts.put(END)


class Stages(NamedTuple):
    """The first two stages, and how many items wait behind them at most; 0: without limit."""

    read: Callable[..., None]
    tokenise: Callable[..., None]
    depth: int


#: The contents of files go through the queues, and the counts of a batch.
CONTENTS = Stages(read, tokenise, DEPTH)
#: The names of files go through the queues, and each identifier by itself: many small items.
NAMES = Stages(name, tokenise_named, 0)


def total(counts: AnyQueue, totals: AnyQueue, workers: int, files: Counted) -> None:
    """Add up the counts of all workers; put the result. ``files`` is how many files there were."""
    result = Totals()
    working = workers
    while working:
        counted = counts.get()
        if counted is END:
            working -= 1
        elif type(counted) is tuple:
            identifier, number = counted
            result.identifiers[identifier] += number
        else:
            result.add(counted)
            files.value = result.files
    totals.put(result)


def _contents(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _count(source: bytes | None) -> Totals:
    """Count the tokens of one file, and its identifiers."""
    if source is None:
        return _SKIPPED
    counted = Totals(files=1)
    try:
        for kind, text, *_ in tokenize.tokenize(io.BytesIO(source).readline):
            counted.tokens += 1
            if kind == tokenize.NAME and not keyword.iskeyword(text):
                counted.identifiers[text] += 1
    except (SyntaxError, tokenize.TokenError, ValueError):
        return _SKIPPED
    return counted


#: A job of the demo ``fair``: the name of its tenant.
Job = tuple[str]
#: Seconds that all jobs of each tenant waited until they were done, from when work began.
Delays = dict[str, list[float]]


def tenant(job: Job) -> str:
    return job[0]


def submit(jobs: AnyQueue, name: str, number: int) -> None:
    for _ in range(number):
        jobs.put((name,))


def work(jobs: AnyQueue, reports: AnyQueue, number: int, seconds: float) -> None:
    """Do so many jobs, each of which takes so many seconds; put the delays at the end.

    Begins when all jobs are queued, however slowly processes start here.
    """
    while jobs.qsize() < number:
        time.sleep(seconds)
    began = time.monotonic()
    delays: Delays = {}
    for _ in range(number):
        (name,) = jobs.get()
        time.sleep(seconds)
        delays.setdefault(name, []).append(time.monotonic() - began)
    reports.put(delays)
