"""The common put and the common get: there is less to say then, and less to do."""

from __future__ import annotations

import time
from typing import NamedTuple

from ...encoding.large import is_manifest
from .statements import Statements
from .ways import Asked, Reply
from .wire import Row, Statement

#: How many calls are made as any other, after one that could not be made quickly: somebody waits
#: at the queue, say.
_PAUSE = 8
#: Seconds for which a version of the queue is worth knowing: what it was since is looked at.
_FRESH = 0.1
#: Bytes of a number as the server sends and reads it.
_NUMBER = 8


class Known(NamedTuple):
    """A queue's slot, its id, and its version at a time."""

    slot: bytes
    queue: bytes
    version: bytes
    at: float


class Quick:
    """Whether calls to one queue are tried so; and what the last one of each operation told."""

    __slots__ = ("_known", "_pause")

    def __init__(self) -> None:
        self._pause = 0
        self._known: dict[str, Known] = {}

    def may_do(self, asked: Asked, discipline: str) -> bool:
        """Whether that is tried first."""
        args = asked.args
        if asked.op == "put":
            if (
                discipline != "fifo"
                or len(asked.items) != 1
                or len(args) != ("waits" in args)
                or is_manifest(asked.items[0])
            ):
                return False
        elif asked.op != "take" or discipline == "fair" or args["limit"] != 1 or "durable" in args:
            return False
        if self._pause:
            self._pause -= 1
            return False
        return True

    def known(self, op: str) -> Known | None:
        """What the last such call told, if that was lately."""
        known = self._known.get(op)
        return known if known is not None and time.monotonic() - known.at < _FRESH else None

    def statement(self, statements: Statements, asked: Asked, known: Known | None) -> Statement:
        """What it is tried by, as the schema says."""
        if asked.op == "put":
            return statements.put_one if known is None else statements.put_next
        return statements.take_one if known is None else statements.take_next

    def read(self, asked: Asked, known: Known | None, row: Row) -> Reply | None:
        """The reply to such a call; None if nothing was done."""
        said = row[0]
        if said is None:
            self._pause = _PAUSE
            self._known.pop(asked.op, None)
            return None
        if known is None:
            slot, queue, said = said[:_NUMBER], said[_NUMBER : 2 * _NUMBER], said[2 * _NUMBER :]
        else:
            slot, queue = known.slot, known.queue
        self._known[asked.op] = Known(slot, queue, said[:_NUMBER], time.monotonic())
        if asked.op == "put":
            return Reply("added", 1, [])
        return Reply("taken", None, [said[_NUMBER:]])
