"""When those of a process who wait for a queue, or look at it, see to its roles."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ..contract.session import TICK


class Waiting:
    """An operation that waits for a queue, as the looks of its process see it.

    A look that renews the leases of the process renews the operation's role, or its place in line,
    too, and sees whether there is anything to do. Until then the operation need not call.
    """

    __slots__ = ("_came", "_lease", "_seen", "is_due", "safe", "ticket")

    def __init__(self, ticket: str, lease: int) -> None:
        """``lease`` is in milliseconds."""
        self.ticket = ticket
        self._lease = lease / 1000
        self._came = self._seen = 0.0
        #: Whether a look saw that there is something to do.
        self.is_due = False
        #: The time, on the monotonic clock, until which looks have renewed its role or place.
        self.safe = 0.0

    def stay(self) -> None:
        """Note that the operation still waits."""
        self._came = time.monotonic()

    def see(self, began: float, is_due: bool) -> None:
        """Note what a look found that ``began`` then: whether the operation has something to do."""
        self.is_due = is_due
        if not is_due:
            self._seen, self.safe = began, began + self._lease / 3

    @property
    def is_there(self) -> bool:
        """Whether the operation called :meth:`stay` recently. A stopped thread, or a task of a
        blocked event loop, loses its role or its place in line after its lease."""
        return time.monotonic() - self._came < self._lease / 2

    @property
    def is_looked_after(self) -> bool:
        """Whether a look saw recently that there is nothing to do."""
        return not self.is_due and time.monotonic() - self._seen < min(self._lease / 2, 3 * TICK)


class Rounds:
    """Once a tick, however many they are; sooner when something runs out by then."""

    def __init__(self) -> None:
        self._next = 0.0
        self._is_left_to_looks = False
        self._unclaimed: dict[bytes, float] = {}
        self._waiting: dict[str, Waiting] = {}

    def after_fork(self) -> None:
        """Forget the waiting operations in a forked child: they are the parent's."""
        self._waiting = {}

    def is_due(self) -> bool:
        """Whether it is time; then the caller does it, and nobody else until the next time."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next, self._is_left_to_looks = now + TICK, False
        return True

    def note(self, again: float | None, looks: bool = False) -> None:
        """It was done; in ``again`` seconds something runs out, if that is known. ``looks``: by a
        process that looks at the queue more often than once a tick, and does it each time."""
        limit = TICK if again is None else min(again, TICK)
        self._next = time.monotonic() + limit
        self._is_left_to_looks = looks and limit == TICK

    def overdue(self, unclaimed: list[bytes], lease: float) -> list[bytes]:
        """Select the roles whose token has been in no list for ``lease`` seconds; ``unclaimed`` are
        the roles whose token is in no list now, though no client ever had it. A client that takes
        a role says so at once."""
        now = time.monotonic()
        self._unclaimed = {role: self._unclaimed.get(role, now) for role in unclaimed}
        return [role for role, since in self._unclaimed.items() if now - since > lease]

    @property
    def left(self) -> float | None:
        """The seconds until it is time again; None when nobody need come for it."""
        return None if self._is_left_to_looks else max(self._next - time.monotonic(), 0.0)

    def stay(self, waiting: Waiting) -> None:
        """Note that an operation still waits."""
        waiting.stay()
        self._waiting[waiting.ticket] = waiting

    def leave(self, waiting: Waiting) -> None:
        """Note that an operation waits no more."""
        self._waiting.pop(waiting.ticket, None)

    def present(self) -> list[Waiting]:
        """Return the waiting operations. Forgets an operation that did not call :meth:`stay`
        recently, or whose event loop was closed."""
        found = []
        for one in list(self._waiting.values()):
            if one.is_there:
                found.append(one)
            else:
                self._waiting.pop(one.ticket, None)
        return found


def tell(asked: Iterable[Waiting], began: float, due: Iterable[bytes]) -> None:
    """Note the result of a look that ``began`` then, for the operations that it asked for: the
    ``due`` ones have something to do."""
    tickets = {ticket.decode() for ticket in due}
    for one in asked:
        one.see(began, one.ticket in tickets)
