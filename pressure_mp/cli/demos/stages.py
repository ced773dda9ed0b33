"""The stages of the pipeline: each is one function, for one kind of process.

They are written once and run on either kind of queue, pressure_mp's or multiprocessing's. So
they end the stream with a marker in it, since multiprocessing's queues cannot be shut down.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

END = None


class AnyQueue(Protocol):
    """What the stages need of a queue."""

    def put(self, item: Any, /) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> Any: ...


class Counted(Protocol):
    """A number that processes share."""

    value: int


@dataclass
class Totals:
    """What was counted; ``skipped`` of the ``files`` could not be read or tokenised."""

    files: int = 0
    skipped: int = 0
    tokens: int = 0
    identifiers: Counter[str] = field(default_factory=Counter)


def read(paths: list[Path], sources: AnyQueue, workers: int) -> None:
    """Put each file's contents, and for each worker an end."""
    for path in paths:
        sources.put(_contents(path))
    for _ in range(workers):
        sources.put(END)


def tokenise(sources: AnyQueue, counts: AnyQueue) -> None:
    """Put what each file contributes to the totals, until the end, and then that."""
    while (source := sources.get()) is not END:
        counts.put(_count(source))
    counts.put(END)


def total(counts: AnyQueue, totals: AnyQueue, workers: int, files: Counted) -> None:
    """Add up what all workers counted; put the result. ``files`` is how many they were."""
    result = Totals()
    working = workers
    while working:
        counted = counts.get()
        if counted is END:
            working -= 1
            continue
        result.files += 1
        files.value = result.files
        if isinstance(counted, str):
            result.skipped += 1
            continue
        tokens, identifiers = counted
        result.tokens += tokens
        result.identifiers.update(identifiers)
    totals.put(result)


def _contents(path: Path) -> bytes | str:
    """The file, or why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        return str(error)


def _count(source: bytes | str) -> tuple[int, Counter[str]] | str:
    """How many tokens, and which identifiers how often; or why that cannot be said."""
    if isinstance(source, str):
        return source
    tokens = 0
    identifiers: Counter[str] = Counter()
    try:
        for kind, text, *_ in tokenize.tokenize(io.BytesIO(source).readline):
            tokens += 1
            if kind == tokenize.NAME and not keyword.iskeyword(text):
                identifiers[text] += 1
    except (SyntaxError, tokenize.TokenError, ValueError) as error:
        return str(error)
    return tokens, identifiers
