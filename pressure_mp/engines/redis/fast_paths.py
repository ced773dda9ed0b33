"""Smaller scripts that do what a larger one does if that can be done at once, and otherwise
nothing."""

from __future__ import annotations

from ..shortcut import Shortcut
from .statuses import DECLINED, Reply


class Rare(Shortcut):
    """A fast path that helps in all of a queue's calls or in none, and is seldom tried in vain."""

    PROBATION = 100

    def is_due(self) -> bool:
        """Tell whether to try it for a call; if not, the call counts as a full one."""
        if not self.is_open:
            self.note(True)
        return self.is_open


class FastPath(Shortcut):
    """A smaller script.

    ``waiting`` is the one for a caller that may wait, which also takes the role to wait with. Its
    arguments are client id, ticket, lease in milliseconds, and the item that came with the wake-up,
    if one did.
    """

    def __init__(self, op: str, waiting: FastPath | None = None) -> None:
        super().__init__()
        self.op = op
        self.waiting = waiting

    def did(self, reply: Reply) -> bool:
        """Tell whether the smaller call did the request; otherwise make the full call."""
        if reply[0] == DECLINED:
            self.close()
            return False
        return True
