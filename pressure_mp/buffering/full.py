"""Puts into a queue that is mostly full: each is sent together with the wait for its space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..effects import AnyOperation, Ask, Operation, T
from ..engines.contract.items import Put
from ..engines.contract.replies import NoSpace
from .pace import WATCH, may_watch

if TYPE_CHECKING:
    from .handle import BufferedHandle

#: After one that waited, so many puts expect that there is no space. None of them tells whether it
#: had to wait, so the next one does not.
_EXPECTED = 16


def run_after_wait(handle: BufferedHandle, operation: AnyOperation[T], request: Put) -> T:
    """Run an operation that begins with ``request``: that is sent together with a wait for space,
    if the engine can do so."""
    session = handle._session()
    try:
        session.send_ahead(request, NoSpace(0), WATCH)
    except BaseException:
        session.interrupted()
        session.end()
        raise
    return handle._run_on(session, operation)


class WhereFull:
    """Which puts of a handle to an anonymous queue with a bound are expected to wait.

    One that finds the queue full makes a call to hear that, waits, and makes the same call again.
    So after one that had to wait the next ones wait first: what they call is sent behind the wait,
    in one round trip. That costs little where there is space. They have no place in line for that
    moment; one that finds no space after it waits as any other does.
    """

    def __init__(self) -> None:
        self._expected = 0

    def expected(self, putting: Ask[T]) -> Put | None:
        """The request with which an operation begins, if it is expected to wait. Notes what comes
        of it."""
        rest = putting.rest

        def go_on(ask: Ask[T], reply: Any) -> Operation[T]:
            self._expected = _EXPECTED if type(reply) is NoSpace else 0
            return rest(ask, reply)

        putting.rest = go_on
        if not self._expected:
            return None
        self._expected -= 1
        request: Put = putting.request
        return request if request.waits and may_watch(putting.end) else None
