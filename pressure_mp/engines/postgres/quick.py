"""The common put and the common get: there is less to say then, and less to do."""

from __future__ import annotations

from .statements import Statements
from .ways import Asked, Reply
from .wire import Row, Statement

#: How many calls are made as any other, after one that could not be made quickly: somebody waits
#: at the queue, say.
_PAUSE = 8


class Quick:
    """Whether calls to one queue are tried so."""

    __slots__ = ("_pause",)

    def __init__(self) -> None:
        self._pause = 0

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

    def read(self, asked: Asked, row: Row) -> Reply | None:
        """The reply; None if nothing was done."""
        said = row[0]
        if asked.op == "put":
            if said == b"\x01":
                return Reply("added", 1, [])
        elif said is not None:
            return Reply("taken", None, [said])
        self._pause = _PAUSE
        return None
