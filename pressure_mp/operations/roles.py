"""The roles that others keep: whoever waits, or looks at a queue, sees to it that they live.

A client of ours that was killed while it waited with a role, or stood in line for one, gives
nothing back. A client of another make that is next in line cannot know; so each of ours looks after
both roles, not only after the one that it wants.
"""

from __future__ import annotations

from ..effects import DONE, TICK, Call, Gone, Now, Operation, Reply
from ..exceptions import PressureError
from ..identity import process_of


def free_roles(lease: int, end: float | None = None) -> Operation[float | None]:
    """Give back the roles of clients that have ended. A lease, or the time of a grant, that has run
    out is ended too, whoever had it.

    Answers in how many seconds to look again, None when there is no queue.
    """
    while True:
        reply: Reply = yield Call("keepers", (lease,), end)
        if reply[0] != DONE:
            return None
        gone: dict[str, bool | None] = {}
        for named in reply[2]:
            keeper = named.decode(errors="replace")
            process = process_of(keeper)
            if process not in gone:
                gone[process] = yield Gone(keeper)
            if gone[process]:
                yield Call("evict", (keeper, lease), end)
        if reply[1] != 0:  # else something was ended, and only now there is a next one
            return float(reply[1]) / 1000


class Rounds:
    """:func:`free_roles` for those who do not wait: once a tick, however often they look."""

    def __init__(self, lease: int) -> None:
        self._lease = lease
        self._next = 0.0

    def make(self) -> Operation[None]:
        """Look after the roles, if it is time. Whoever looks has its answer: no error is raised."""
        now: float = yield Now()
        if now < self._next:
            return
        self._next = now + TICK
        try:
            yield from free_roles(self._lease, 0.0)  # one try
        except PressureError:
            pass  # whoever needs a role is told
