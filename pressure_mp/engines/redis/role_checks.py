"""Decide when this process checks whether the holders of a queue's roles live."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ..contract.session import TICK


class WaitingOperation:
    """An operation that waits for a queue, as the renewals of its process see it.

    A renewal of the process's leases also renews the operation's role, or its place in line, and
    sees whether there is anything to do. Until then the operation need not call.
    """

    __slots__ = ("_came", "_lease", "_seen", "is_due", "safe", "ticket")

    def __init__(self, ticket: str, lease: int) -> None:
        """``lease`` is in milliseconds."""
        self.ticket = ticket
        self._lease = lease / 1000
        self._came = self._seen = 0.0
        #: Whether a renewal saw that there is something to do.
        self.is_due = False
        #: The time, on the monotonic clock, until which its role or place is renewed.
        self.safe = 0.0

    def stay(self) -> None:
        self._came = time.monotonic()

    def see(self, began: float, is_due: bool) -> None:
        """Note what a renewal that ``began`` then saw: whether the operation has something to
        do."""
        self.is_due = is_due
        if not is_due:
            self._seen, self.safe = began, began + self._lease / 3

    @property
    def is_there(self) -> bool:
        """Whether the operation called :meth:`stay` recently. A stopped thread, or a task of a
        blocked event loop, loses its role or its place in line after its lease."""
        return time.monotonic() - self._came < self._lease / 2

    @property
    def is_renewed(self) -> bool:
        """Whether a renewal saw recently that there is nothing to do."""
        return not self.is_due and time.monotonic() - self._seen < min(self._lease / 2, 3 * TICK)


class RoleChecks:
    """The times at which this process checks the roles of one queue: once a tick, however many of
    its operations wait, or sooner when a lease ends sooner."""

    def __init__(self) -> None:
        self._next = 0.0
        self._is_left_to_renewals = False
        self._never_held: dict[bytes, float] = {}
        self._waiting: dict[str, WaitingOperation] = {}

    def after_fork(self) -> None:
        """Forget the waiting operations in a forked child: they are the parent's."""
        self._waiting = {}

    def is_due(self) -> bool:
        """Tell whether the caller is to check now: one caller each time."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next, self._is_left_to_renewals = now + TICK, False
        return True

    def note(self, again: float | None, by_renewal: bool = False) -> None:
        """Note that the roles were checked; in ``again`` seconds a lease ends, if that is known.
        ``by_renewal``: by a renewal. The process renews more often than once a tick, and checks
        each time."""
        limit = TICK if again is None else min(again, TICK)
        self._next = time.monotonic() + limit
        self._is_left_to_renewals = by_renewal and limit == TICK

    def overdue(self, never_held: list[bytes], lease: float) -> list[bytes]:
        """Select the roles whose token has been in no list for ``lease`` seconds. ``never_held``:
        those whose token is in no list now, though no client ever had it. A client that takes a
        role says so at once."""
        now = time.monotonic()
        self._never_held = {role: self._never_held.get(role, now) for role in never_held}
        return [role for role, since in self._never_held.items() if now - since > lease]

    @property
    def left(self) -> float | None:
        """The seconds until the next check; None when the renewals check."""
        return None if self._is_left_to_renewals else max(self._next - time.monotonic(), 0.0)

    def stay(self, operation: WaitingOperation) -> None:
        """Note that an operation still waits."""
        operation.stay()
        self._waiting[operation.ticket] = operation

    def leave(self, operation: WaitingOperation) -> None:
        self._waiting.pop(operation.ticket, None)

    def present(self) -> list[WaitingOperation]:
        """Return the waiting operations. Forgets an operation that did not call :meth:`stay`
        recently, or whose event loop was closed."""
        found = []
        for operation in list(self._waiting.values()):
            if operation.is_there:
                found.append(operation)
            else:
                self._waiting.pop(operation.ticket, None)
        return found


def note_renewal(asked: Iterable[WaitingOperation], began: float, due: Iterable[bytes]) -> None:
    """Note the result of a renewal that ``began`` then for the operations in ``asked``: those whose
    tickets are ``due`` have something to do."""
    tickets = {ticket.decode() for ticket in due}
    for operation in asked:
        operation.see(began, operation.ticket in tickets)
