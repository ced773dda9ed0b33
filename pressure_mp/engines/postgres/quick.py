"""Shorter calls for the common put and the common get."""

from __future__ import annotations

import time
from typing import NamedTuple

from ...encoding.large import is_manifest
from ...identity.client import client_id_bytes
from ..contract.items import Added, Put, Take, Taken
from ..contract.requests import Request
from ..contract.session import Options
from .outage import Call
from .pool import Lane
from .statements import Statements

#: How many full calls are made after a quick call that did nothing, for example because a client
#: waits at the queue.
_PAUSE = 8
#: Seconds for which a version of the queue is used: the server checks the versions since then.
_FRESH = 0.1
#: Bytes of a number in the server's format.
_NUMBER = 8

_ADDED = Added(1)


class Known(NamedTuple):
    """A queue's slot, its id, and its version at a time."""

    slot: bytes
    queue: bytes
    version: bytes
    at: float


class Quick:
    """The quick calls to one queue: whether they are tried, and what the replies to the last put
    and the last take said."""

    __slots__ = ("_discipline", "_known", "_name", "_pause", "_puts", "_statements", "_takes")

    def __init__(
        self, statements: Statements, prefix: str, name: str, discipline: str, options: Options
    ) -> None:
        self._statements = statements
        self._name = prefix.encode(), name.encode()
        self._discipline = discipline.encode()
        is_plain = options.durability is None
        self._puts = is_plain and discipline == "fifo"
        self._takes = is_plain and discipline in ("fifo", "lifo", "priority")
        self._pause = 0
        self._known: dict[type, Known] = {}

    def may_do(self, request: Request) -> bool:
        """Tell whether to try a quick call for a request first."""
        if type(request) is Put:
            items, _, overfill, has_content, _ = request
            if (
                not self._puts
                or len(items) != 1
                or overfill
                or has_content
                or is_manifest(items[0])
            ):
                return False
        elif type(request) is Take:
            limit, hold, until_ended, _ = request
            if not self._takes or limit != 1 or hold is not None or until_ended:
                return False
        else:
            return False
        if self._pause:
            self._pause -= 1
            return False
        return True

    def known(self, request: Request) -> Known | None:
        """Return what the reply to the last such call said, if that was recent."""
        known = self._known.get(type(request))
        return known if known is not None and time.monotonic() - known.at < _FRESH else None

    def call(self, request: Put | Take, known: Known | None, lane: Lane, number: int) -> Call:
        statements = self._statements
        own = [client_id_bytes(), lane.id.encode(), b"%d" % number]
        if isinstance(request, Put):
            own.append(bytes(request.items[0]))
            if known is None:
                return statements.put_one, [*self._name, *own]
            return statements.put_next, [*known[:3], *own]
        if known is None:
            return statements.take_one, [*self._name, self._discipline, *own]
        return statements.take_next, [*known[:3], *own]

    def read(
        self, request: Put | Take, known: Known | None, said: bytes | None
    ) -> Added | Taken | None:
        """Read the reply to a quick call; None if it did nothing."""
        if said is None:
            self._pause = _PAUSE
            self._known.pop(type(request), None)
            return None
        if known is None:
            slot, queue, said = said[:_NUMBER], said[_NUMBER : 2 * _NUMBER], said[2 * _NUMBER :]
        else:
            slot, queue, _, _ = known
        self._known[type(request)] = Known(slot, queue, said[:_NUMBER], time.monotonic())
        return _ADDED if isinstance(request, Put) else Taken([said[_NUMBER:]])
