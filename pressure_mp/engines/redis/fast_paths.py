"""Smaller scripts that do what a larger one does when it can be done at once, and else nothing."""

from __future__ import annotations

from .statuses import DECLINED, Reply


class Shortcut:
    """Something that is tried before a full call. After it did not help it is not tried again until
    some full calls were served at once, one after the other: whoever often has to wait makes one
    call less."""

    #: So many. One that is declined takes about as long as some full calls take longer.
    PROBATION = 5

    def __init__(self) -> None:
        self.is_open = True
        self._missing = 0

    def close(self) -> None:
        """The last call, small or full, was not served at once."""
        self.is_open = False
        self._missing = self.PROBATION

    def note(self, served: bool) -> None:
        """A full call was served at once, or not."""
        if not served:
            self.close()
            return
        self._missing -= 1
        self.is_open = self._missing <= 0


class Rare(Shortcut):
    """One that is of use in all of a queue's calls or in none, and is seldom tried in vain."""

    PROBATION = 100

    def is_due(self) -> bool:
        """Whether to try it for a call; if not, that is counted as a full one."""
        if not self.is_open:
            self.note(True)
        return self.is_open


class FastPath(Shortcut):
    """A smaller script.

    ``waiting`` is another one, for a caller that may wait: that also takes the role to wait with.
    Its arguments are client id, ticket, lease in milliseconds, and the item that the caller was
    given, if it was.
    """

    def __init__(self, op: str, waiting: FastPath | None = None) -> None:
        super().__init__()
        self.op = op
        self.waiting = waiting

    def did(self, reply: Reply) -> bool:
        """Whether the smaller call did it; else the full one is to be made."""
        if reply[0] == DECLINED:
            self.close()
            return False
        return True
