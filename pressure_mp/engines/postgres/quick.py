"""The common put and the common get: there is less to say then, and less to do."""

from __future__ import annotations

import time
from struct import Struct

from .statements import Statements
from .ways import Asked, Reply
from .wire import Row, Statement

#: How many calls are made as any other, after one that could not be made quickly: somebody waits
#: at the queue, say.
_PAUSE = 8
#: Seconds for which a version of the queue is worth knowing: what it was since is looked at.
_FRESH = 0.1
_VERSION = Struct("!q")


class Quick:
    """Whether calls to one queue are tried so; and which version the last one of each operation
    told, and when."""

    __slots__ = ("_known", "_pause")

    def __init__(self) -> None:
        self._pause = 0
        self._known: dict[str, tuple[int, float]] = {}

    def statement(self, statements: Statements, asked: Asked, discipline: str) -> Statement | None:
        """What to try first, if anything: as ``put_one`` and ``take_one`` say in the schema."""
        args = asked.args
        if asked.op == "put":
            if discipline != "fifo" or len(asked.items) != 1 or len(args) != ("waits" in args):
                return None
            found = statements.put_one
        elif asked.op == "take" and args["limit"] == 1 and "durable" not in args:
            found = statements.take_one
        else:
            return None
        if self._pause:
            self._pause -= 1
            return None
        return found

    def version(self, op: str) -> int:
        """One that the queue had when the last such call was made; 0 if that is not lately."""
        version, known_at = self._known.get(op, (0, 0.0))
        return version if time.monotonic() - known_at < _FRESH else 0

    def read(self, asked: Asked, row: Row) -> Reply | None:
        """The reply; None if nothing was done."""
        said = row[0]
        if said is None:
            self._pause = _PAUSE
            self._known.pop(asked.op, None)
            return None
        self._known[asked.op] = _VERSION.unpack_from(said)[0], time.monotonic()
        if asked.op == "put":
            return Reply("added", 1, [])
        return Reply("taken", None, [said[_VERSION.size :]])
