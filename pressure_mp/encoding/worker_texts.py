"""Write and read the text of a worker, which the broker keeps."""

from __future__ import annotations

import json
from typing import NamedTuple


class WorkerText(NamedTuple):
    """The text of a worker. ``since`` is in milliseconds, by the broker's clock; an empty tube
    stands for all tubes. ``late`` has the ids of tasks whose ttr is over while their handlers go
    on."""

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
