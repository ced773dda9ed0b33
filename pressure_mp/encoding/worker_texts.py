"""What a process says of each of its workers, as the broker keeps it."""

from __future__ import annotations

import json
from typing import NamedTuple


class WorkerText(NamedTuple):
    """What a process says of one of its workers. ``since`` is in milliseconds, by the broker's
    clock; a tube that is empty stands for all tubes. ``late`` are the ids of tasks whose ttr is
    over while their handlers go on."""

    number: int
    concurrency: int
    tubes: tuple[str, ...]
    since: int
    version: str
    late: tuple[int | str, ...] = ()

    def write(self) -> str:
        return json.dumps(self._asdict(), separators=(",", ":"))


def read_worker(text: str) -> WorkerText | None:
    """Read what another process wrote; None when a version of this package wrote it that this one
    cannot read."""
    try:
        told = json.loads(text)
        found = WorkerText(*(told[name] for name in WorkerText._fields))
        return found._replace(
            number=int(found.number),
            concurrency=int(found.concurrency),
            tubes=tuple(map(str, found.tubes)),
            since=int(found.since),
            version=str(found.version),
            late=tuple(id for id in found.late if isinstance(id, (int, str))),
        )
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
