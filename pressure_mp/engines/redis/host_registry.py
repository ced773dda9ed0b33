"""The anonymous queues of a host, as the script that opens a queue notes and reports them."""

from __future__ import annotations

from typing import NamedTuple

from ..contract.hosts import QueueKey


class NoteArguments(NamedTuple):
    """Arguments of the script that opens a queue: the queue, if it is to be noted; and whether the
    reply is to say what was noted before. Both are empty where the script cannot do it."""

    queue: str = ""
    asks: str = ""


class NotesOfHost:
    """The queues that were noted before this process opened its first queue, as the reply to that
    call said. A forked child does not ask again, as its parent did."""

    def __init__(self) -> None:
        self._found: list[bytes] | None = None
        self._is_known = False  # or not needed any more

    def arguments(self, queue: QueueKey, user: str) -> NoteArguments:
        """Return the arguments with which to open a queue, which is anonymous if it has a
        ``user``."""
        return NoteArguments(as_noted(queue) if user else "", "0" if self._is_known else "1")

    def hear(self, arguments: NoteArguments, found: list[bytes]) -> None:
        """Keep what the reply to an opening with these arguments says."""
        if arguments.asks == "1" and not self._is_known:
            self._found, self._is_known = found, True

    def take(self) -> list[bytes] | None:
        """Return the queues that were noted, once. After None the caller asks the server itself,
        and no later opening asks."""
        found, self._found, self._is_known = self._found, None, True
        return found


def as_noted(queue: QueueKey) -> str:
    """Return the member of the host's set that stands for a queue."""
    name, discipline = queue
    return f"{discipline} {name}"
