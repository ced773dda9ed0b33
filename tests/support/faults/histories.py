"""Operations of clients and their times: each client writes them down, and a test reads them later.

A client that is killed leaves an operation that has begun and not ended. All times are
nanoseconds of one host's monotonic clock, which its processes share.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEVER = float("inf")

#: What an operation came to.
DONE = "done"
UNKNOWN = "unknown"  #: the client was killed or lost its broker: it may or may not have happened
EMPTY, FULL, CLOSED, BUSY = "empty", "full", "closed", "busy"  #: it certainly did not
FENCED = "fenced"  #: a task_done that came after the item had been given to another


@dataclass(frozen=True)
class Operation:
    """One operation of one client; a client does one at a time.

    ``kind`` is ``put``, ``get``, ``task_done``, ``shutdown``, or ``producer`` or ``consumer`` for
    the time in which the client certainly had that role. ``item`` names what was put or got.
    """

    client: str
    kind: str
    begin: float
    end: float = NEVER
    outcome: str = UNKNOWN
    item: str = ""

    @property
    def call(self) -> str:
        return f"{self.kind}({self.item}) of {self.client}"


class Log:
    """A client's own account: one line when an operation begins, one when it has ended.

    Each is written to the file at once, so that nothing is lost with the client. What overlaps
    the client's operations, as having a role does, is another ``part`` with a log of its own.
    """

    def __init__(self, directory: Path | str, client: str, part: str = "operations") -> None:
        self.directory = Path(directory)
        self.client = client
        path = self.directory / f"{client}.{part}.log"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)

    def begin(self, kind: str, item: str = "") -> None:
        self._write(f"begin {time.monotonic_ns()} {kind} {item}\n")

    def end(self, outcome: str = DONE, item: str = "") -> None:
        self._write(f"end {time.monotonic_ns()} {outcome} {item}\n")

    def _write(self, line: str) -> None:
        os.write(self._file, line.encode())

    def close(self) -> None:
        os.close(self._file)


def read(directory: Path) -> list[Operation]:
    """The operations of all clients that wrote to ``directory``."""
    return [done for path in sorted(directory.glob("*.log")) for done in _read_one(path)]


def _read_one(path: Path) -> Iterator[Operation]:
    client = path.stem.partition(".")[0]
    begun: Operation | None = None
    for line in path.read_text().splitlines():
        what, when, kind_or_outcome, item = line.split(" ", 3)
        if what == "begin":
            assert begun is None, f"{client} began {line!r} before {begun} had ended"
            begun = Operation(client, kind_or_outcome, int(when), item=item)
        else:
            assert begun is not None, f"{client} ended {line!r} without a begin"
            end = NEVER if kind_or_outcome == UNKNOWN else int(when)
            yield dataclasses.replace(
                begun, end=end, outcome=kind_or_outcome, item=item or begun.item
            )
            begun = None
    if begun is not None:
        yield begun


def longest_stall(history: Iterable[Operation]) -> float:
    """The longest time, in seconds, in which no put and no get ended."""
    ends = sorted(o.end for o in history if o.outcome == DONE and o.kind in ("put", "get"))
    return max((b - a for a, b in itertools.pairwise(ends)), default=0.0) / 1e9


def rate(history: Iterable[Operation], kind: str = "get") -> float:
    """How many such operations were done in a second."""
    ends: list[Any] = sorted(o.end for o in history if o.outcome == DONE and o.kind == kind)
    return len(ends) / max((ends[-1] - ends[0]) / 1e9, 1e-9) if len(ends) > 1 else 0.0
